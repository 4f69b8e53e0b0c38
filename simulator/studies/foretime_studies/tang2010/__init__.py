"""Tang et al. 2010: adjusted requests on a Blue Gene."""
