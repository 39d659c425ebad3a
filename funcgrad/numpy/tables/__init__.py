"""Tables of pandas and xarray with traced values; most modules are imported only after pandas."""
