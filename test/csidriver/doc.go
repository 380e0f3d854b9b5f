// Csidriver is a CSI driver for tests: a process of its own that keeps volumes as folders
// and, where a file system or a raw device is asked for, as loop devices. It does what a
// driver must (the sanity suite of kubernetes-csi runs against it) and writes down what it
// was asked, so that tests can look.
//
// While a file hold-METHOD is in its state folder, the driver does not answer that method:
// hold-before-METHOD stops it at the beginning, hold-after-METHOD when all is done but the
// answer. It notes in a file in-METHOD that it is there.
package main
