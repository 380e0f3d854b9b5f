// Hostpathplugin stands in for the CSI project's program of that name in the images of
// upstream's end-to-end tests. As there it is two things. With -proxy-endpoint it joins
// those who connect to a socket on the node with the test, which runs the driver itself.
// Without, it is a driver, and writes each call to its log in the form that tests read.
//
// It leaves out what those tests do not look at: it keeps no data and mounts nothing (the
// suite's pod would not pass a mount on), has no snapshots, clones, raw block volumes or
// lists, and forgets its volumes when it ends.
package main
