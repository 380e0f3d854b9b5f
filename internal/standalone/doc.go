// Package standalone is `swiftlet up`: it supervises the bundled container runtime on a
// machine that has none, gives it a pod network and images, runs the agent on a directory
// of manifests, and takes everything away again when told to stop. It keeps to folders,
// a socket, a bridge and a cgroup of its own, so that whatever else runs containers on
// the machine is untouched.
package standalone
