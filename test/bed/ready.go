package bed

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitReady returns when the running kubelet has reported the node ready.
func (b *Box) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return b.awaitReady(ctx, b.kubelet)
}

// awaitReady waits until the node is ready. To ignore the status of an earlier kubelet, it requires
// a lease renewal since the start of d.
func (n *nodeFiles) awaitReady(ctx context.Context, d *daemon) error {
	client := n.bed.ControlPlane.Client
	return d.await(ctx, func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !renewedSince(lease, d.began) {
			return fmt.Errorf("lease of %s is not renewed", n.name)
		}
		node, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready: %v", n.name, node.Status.Conditions)
	})
}

func renewedSince(lease *coordinationv1.Lease, began time.Time) bool {
	return lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(began)
}
