// Package syncloop is the kubelet's sync loop: it receives desired pods, observed pods and probe results,
// and passes them to the pods' workers.
package syncloop
