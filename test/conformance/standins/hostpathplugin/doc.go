// Hostpathplugin replaces the CSI project's program of that name in the images of upstream's
// end-to-end tests. Like the original it has two modes. With -proxy-endpoint it connects clients of
// a socket on the node to the test, which runs the driver itself. Without, it is a driver, and logs
// each call in the format that tests read.
//
// It does not support what those tests do not check: it stores no data and mounts nothing (mounts
// would not propagate from the suite's pod), has no snapshots, clones, raw block volumes or lists,
// and loses its volumes when it exits.
package main
