"""Flat arrays in files: written completely or not at all, checked, mapped into memory.

container   named arrays and some JSON in one file: read this first
layout      the bytes of a container                   array_bytes  arrays as bytes
file_bytes  a mapped file                              checksum     XXH64
tables      Arrow tables as bytes                      replacing    how a new file replaces an old one
exclusive   how a file is created that must not exist
"""
