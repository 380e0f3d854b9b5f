// Package standalone implements `swiftlet up`. It supervises the bundled containerd, sets up a
// pod network, imports images, and runs the agent on a directory of manifests. On exit it
// removes everything again. It uses its own directories, socket, bridge and cgroup, so that it
// does not affect other container runtimes on the host.
package standalone
