//! The one format in which knowledge reaches engines: typed values, their widths, what happens to one that does not fit.
