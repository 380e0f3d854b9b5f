package bed

import "path/filepath"

// nodeFiles has the name, the address and the configuration files of a node.
type nodeFiles struct {
	name string
	host int // last byte of its address on the bed's subnet
	dir  string
	bed  *Bed
}

// newNodeFiles reserves an address and a directory. The caller holds b.mu.
func (b *Bed) newNodeFiles(name string) nodeFiles {
	b.hosts++
	return nodeFiles{name: name, host: b.hosts, dir: filepath.Join(b.slot.dir, "nodes", name), bed: b}
}

func (n *nodeFiles) Name() string    { return n.name }
func (n *nodeFiles) Address() string { return n.bed.slot.nodeAddress(n.host) }
func (n *nodeFiles) PodCIDR() string { return n.bed.slot.podCIDR(n.host) }

func (n *nodeFiles) Path(path string) string { return filepath.Join(n.dir, "fs", path) }

// Log is the log file of a program of the node.
func (n *nodeFiles) Log(program string) string {
	return filepath.Join(n.bed.slot.logDir(), n.name+"."+program+".log")
}
