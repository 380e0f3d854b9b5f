// Csidriver is a CSI driver for tests. It runs as its own process. Its volumes are directories or,
// if a file system or a raw device is requested, loop devices. It conforms to the specification
// (see sanity) and records its calls, so that tests can check them.
//
// While the file hold-before-METHOD or hold-after-METHOD is in its state directory, the driver
// blocks that method before or after its work. It creates in-before-METHOD or in-after-METHOD
// while it is blocked.
package main
