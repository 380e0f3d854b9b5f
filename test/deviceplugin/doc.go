// Deviceplugin is a device plugin for tests. It runs as its own process, and its devices are files.
//
// Each file in the directory devices of its state directory is a device of that name; its content is
// the device's health, such as "Healthy". The plugin reports changes at once. A container with
// devices has their names in $SAMPLE_DEVICES, a character device /dev/sample-NAME and a read-only
// file /run/sample/NAME for each and, with -cdi, the variable $SAMPLE_CDI_NAME. The plugin records
// calls in calls.jsonl in the state directory. While the file hang exists there, Allocate blocks and
// writes "hanging" to that file.
//
// The plugin registers on the kubelet's socket, again whenever that socket is recreated, or, with
// -register, through the plugin registration directory.
package main
