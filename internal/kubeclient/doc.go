// Package kubeclient accesses the kinds of API objects that a kubelet uses, and no others: client-go's
// clientset registers every kind of Kubernetes, which is a fifth of the program (docs/performance.md).
package kubeclient
