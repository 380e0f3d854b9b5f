// Package crifaults is a proxy between a kubelet and its container runtime that injects faults: it hangs,
// delays, fails, repeats and changes calls and their responses, and counts them. The runtime itself is real
// and does what it is asked to do.
package crifaults
