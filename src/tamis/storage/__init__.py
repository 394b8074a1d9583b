"""Flat arrays in files: written whole or not at all, checked, mapped into memory."""
