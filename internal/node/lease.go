package node

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/backoff"
)

const (
	leaseNamespace = "kube-node-lease"
	// leaseJitter is the maximum jitter as a fraction of the renew interval, as in the
	// reference kubelet. It spreads the renewals of nodes that recovered from an outage
	// together.
	leaseJitter = 0.04
)

// renewLease renews the node's lease four times per lease duration. The control plane marks a
// node with an expired lease as not ready, so failures are retried with a short back-off.
func (n *Node) renewLease(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-n.registered: // the lease is owned by the Node, which must exist first
	}
	interval := n.cfg.LeaseDuration / 4
	var lease *coordinationv1.Lease
	retry := backoff.Backoff{First: retryFirst, Longest: min(retryMax, interval)}
	failures := 0
	for {
		renewed, err := n.renew(ctx, lease, min(callTimeout, interval))
		wait := interval
		if n.deps.Jitter != nil {
			wait += time.Duration(n.deps.Jitter() * leaseJitter * float64(interval))
		}
		if err == nil {
			lease, failures = renewed, 0
			retry.Reset()
		} else {
			if ctx.Err() != nil {
				return
			}
			wait = retry.Next()
			n.log.Error("node: lease renewal failed, will retry", "retryIn", wait, "err", err)
			if failures++; failures > 1 && n.deps.OnRepeatedHeartbeatFailure != nil {
				n.deps.OnRepeatedHeartbeatFailure()
			}
			// The next attempt reads the lease first, whatever the error was.
			lease = nil
		}
		if !n.sleep(ctx, wait, n.apiServerBack) {
			return
		}
	}
}

// renew updates the lease, or creates it. lease is the result of the last renewal; if it is
// nil, renew reads the lease first.
func (n *Node) renew(ctx context.Context, lease *coordinationv1.Lease, timeout time.Duration) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	leases := n.deps.Heartbeat.Leases(leaseNamespace)
	if lease == nil {
		found, err := leases.Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			created, err := leases.Create(ctx, n.renewedLease(&coordinationv1.Lease{}), metav1.CreateOptions{})
			if err != nil {
				return nil, fmt.Errorf("create lease: %w", err)
			}
			return created, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get lease: %w", err)
		}
		lease = found
	}
	updated, err := leases.Update(ctx, n.renewedLease(lease), metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update lease: %w", err)
	}
	return updated, nil
}

func (n *Node) renewedLease(old *coordinationv1.Lease) *coordinationv1.Lease {
	lease := old.DeepCopy()
	lease.Name, lease.Namespace = n.cfg.NodeName, leaseNamespace
	holder := n.cfg.NodeName
	seconds := int32(n.cfg.LeaseDuration / time.Second)
	now := metav1.NewMicroTime(n.deps.Clock.Now())
	lease.Spec.HolderIdentity = &holder
	lease.Spec.LeaseDurationSeconds = &seconds
	lease.Spec.RenewTime = &now
	if uid := n.ObjectRef().UID; len(lease.OwnerReferences) == 0 && uid != "" {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.cfg.NodeName, UID: uid}}
	}
	return lease
}
