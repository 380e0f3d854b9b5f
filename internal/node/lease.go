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
	// leaseSpread is by how much of itself the time between two renewals varies, as in the
	// reference. Nodes that came back from an outage together draw apart again.
	leaseSpread = 0.04
)

// keepLease renews the node's lease four times in its life. The control plane takes a
// node whose lease ran out for dead, so a failure is retried much sooner than that.
func (n *Node) keepLease(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-n.registered: // the lease is owned by the Node, which must exist first
	}
	every := n.cfg.LeaseDuration / 4
	var lease *coordinationv1.Lease
	retry := backoff.Backoff{First: retryFirst, Longest: min(retryMax, every)}
	failures := 0
	for {
		renewed, err := n.renew(ctx, lease, min(callTimeout, every))
		wait := every
		if n.deps.Jitter != nil {
			wait += time.Duration(n.deps.Jitter() * leaseSpread * float64(every))
		}
		if err == nil {
			lease, failures = renewed, 0
			retry.Reset()
		} else {
			if ctx.Err() != nil {
				return
			}
			wait = retry.Next()
			n.log.Error("node lease was not renewed, will retry", "in", wait, "err", err)
			if failures++; failures > 1 && n.deps.Hung != nil {
				n.deps.Hung()
			}
			// Whatever went wrong, the next try starts from what the server has.
			lease = nil
		}
		if !n.sleep(ctx, wait, n.back) {
			return
		}
	}
}

// renew writes the lease anew; nil is a lease that is not known yet. One request is
// enough as long as nobody else writes it.
func (n *Node) renew(ctx context.Context, lease *coordinationv1.Lease, timeout time.Duration) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	leases := n.deps.Heartbeat.CoordinationV1().Leases(leaseNamespace)
	if lease == nil {
		found, err := leases.Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			created, err := leases.Create(ctx, n.leaseFrom(&coordinationv1.Lease{}), metav1.CreateOptions{})
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
	updated, err := leases.Update(ctx, n.leaseFrom(lease), metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update lease: %w", err)
	}
	return updated, nil
}

func (n *Node) leaseFrom(old *coordinationv1.Lease) *coordinationv1.Lease {
	lease := old.DeepCopy()
	lease.Name, lease.Namespace = n.cfg.NodeName, leaseNamespace
	holder := n.cfg.NodeName
	seconds := int32(n.cfg.LeaseDuration / time.Second)
	now := metav1.NewMicroTime(n.deps.Clock.Now())
	lease.Spec.HolderIdentity = &holder
	lease.Spec.LeaseDurationSeconds = &seconds
	lease.Spec.RenewTime = &now
	if uid := n.ref().UID; len(lease.OwnerReferences) == 0 && uid != "" {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.cfg.NodeName, UID: uid}}
	}
	return lease
}
