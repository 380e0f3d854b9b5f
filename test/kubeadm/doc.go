// Package kubeadm tests Swiftlet as the kubelet of a cluster that kubeadm sets up, beside a node with
// the reference kubelet. Nodes are boxes of a bed. Programs are installed as Debian's packages of
// Kubernetes install them, and images are built from the control plane for tests.
// SWIFTLET_BED_KUBELET=reference runs the reference kubelet on all nodes, which shows that the
// expectations are right.
package kubeadm
