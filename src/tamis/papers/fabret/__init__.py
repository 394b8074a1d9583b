"""The filtering algorithms of Fabret, Jacobsen, Llirbat, Pereira, Ross and Shasha (SIGMOD 2001)."""
