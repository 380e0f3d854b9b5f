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
	// callTimeout limits one request, so that a dead connection does not block for long.
	callTimeout = 10 * time.Second
	retryFirst  = 200 * time.Millisecond
	retryMax    = 7 * time.Second
)

// register creates or adopts the Node, and retries until it succeeds. It returns an error
// only when ctx is done.
func (n *Node) register(ctx context.Context) error {
	retry := backoff.Backoff{First: retryFirst, Longest: retryMax}
	for {
		n.checkRuntime(ctx)
		err := n.tryRegister(ctx)
		if err == nil {
			close(n.registered)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait := retry.Next()
		n.log.Error("node: registration failed, will retry", "retryIn", wait, "err", err)
		if !n.sleep(ctx, wait, n.apiServerBack) {
			return ctx.Err()
		}
	}
}

// tryRegister reads first: a Node usually exists, after every restart of the agent, and a create that conflicts costs
// the API server more than a read.
func (n *Node) tryRegister(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var initial *v1.Node
	if n.cfg.RegisterNode {
		initial = n.initialNode()
		n.fill(ctx, initial)
		// Other packages use this Node while the API server is unreachable.
		n.setCurrent(initial)
		n.deps.Meters.Registering.Inc()
	}
	existing, err := n.deps.Client.Nodes().Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
	switch {
	case err == nil:
		return n.adopt(ctx, existing)
	case n.cfg.RegisterNode && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)):
		return n.create(ctx, initial)
	}
	return fmt.Errorf("get node: %w", err)
}

func (n *Node) create(ctx context.Context, node *v1.Node) error {
	created, err := n.deps.Client.Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	n.deps.Meters.Registered.Inc()
	n.log.Info("Successfully registered node", "node", n.cfg.NodeName)
	n.setReported(n.initialNode(), created, true)
	return nil
}

// adopt updates labels, conditions and status of a Node that exists already, in one request.
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
	n.setReported(existing, updated, true)
	n.log.Info("Node was previously registered", "node", n.cfg.NodeName)
	return nil
}
