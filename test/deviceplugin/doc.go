// Deviceplugin is a device plugin for tests: a process of its own whose devices are files.
//
// Each file in the folder devices of its state folder is a device of that name, and says
// how it is ("Healthy"); a change is told at once. A container that is given devices finds
// their names in $SAMPLE_DEVICES, a character device /dev/sample-NAME for each, a read-only
// file /run/sample/NAME with the name in it, and where the plugin was told to use CDI the
// variable $SAMPLE_CDI_NAME. Calls are noted in calls.jsonl in the state folder. While there
// is a file hang in it, nothing is allocated; "hanging" stands in it then.
//
// The plugin registers on the kubelet's socket and again whenever that is made anew, or,
// with -register, through the folder that all kinds of plugins share.
package main
