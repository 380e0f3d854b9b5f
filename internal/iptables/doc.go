// Package iptables creates the chains that other programs on a node expect: a hint which variant
// of iptables the node uses, and a rule that blocks loopback addresses from other hosts. It
// detects when another program flushes the tables, and creates the chains again.
package iptables
