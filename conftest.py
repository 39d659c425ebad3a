# Reached from here these folders would be imported as `transforms` and `interop`: second copies of the
# modules that are collected through the links in `funcgrad/`.
collect_ignore_glob = ["transforms/*", "interop/*"]
