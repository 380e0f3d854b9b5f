package node

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/backoff"
)

const (
	// callTimeout bounds one request, so that a connection which died silently is given up.
	callTimeout = 10 * time.Second
	retryFirst  = 200 * time.Millisecond
	retryMax    = 7 * time.Second
)

// register makes the API server have the Node, however long that takes. It returns an
// error only when ctx is done.
func (n *Node) register(ctx context.Context) error {
	retry := backoff.Backoff{First: retryFirst, Longest: retryMax}
	for {
		n.lookAtRuntime(ctx)
		err := n.tryRegister(ctx)
		if err == nil {
			close(n.registered)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait := retry.Next()
		n.log.Error("node is not registered, will retry", "in", wait, "err", err)
		if !n.sleep(ctx, wait, n.back) {
			return ctx.Err()
		}
	}
}

func (n *Node) tryRegister(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nodes := n.deps.Client.CoreV1().Nodes()
	if n.cfg.RegisterNode {
		node := n.blank()
		n.fill(ctx, node)
		// The rest of the agent can work with this while the API server is away.
		n.setCurrent(node)
		n.deps.Meters.Registering.Inc()
		created, err := nodes.Create(ctx, node, metav1.CreateOptions{})
		if err == nil {
			n.deps.Meters.Registered.Inc()
			n.accept(n.blank(), created, true)
			return nil
		}
		// An agent that may not create Nodes may still have one to look after.
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("create node: %w", err)
		}
	}
	existing, err := nodes.Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	return n.adopt(ctx, existing)
}

// adopt takes over a Node that was there before, with its labels, conditions and status
// brought up to date in one request.
func (n *Node) adopt(ctx context.Context, existing *v1.Node) error {
	next := existing.DeepCopy()
	if n.cfg.RegisterNode {
		n.reconcile(next)
	}
	n.fill(ctx, next)
	updated, err := n.patch(ctx, existing, next)
	if err != nil {
		return err
	}
	n.accept(existing, updated, true)
	return nil
}
