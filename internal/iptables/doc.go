// Package iptables makes the chains that other programs on a node look for: one that shows
// which iptables the node uses, and a rule that keeps the node's loopback addresses from
// others. It notices when somebody flushes the tables, and makes them again.
package iptables
