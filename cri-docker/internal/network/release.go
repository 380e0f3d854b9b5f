package network

import (
	"context"
	"errors"

	"github.com/containernetworking/cni/libcni"
)

// Release frees the addresses and ports of a sandbox whose pause container was removed by others.
func (n *Network) Release(ctx context.Context, id string) error {
	attached, err := n.attachments(id)
	if err != nil {
		return err
	}
	return n.release(ctx, attached)
}

// ReleaseAll frees those of all sandboxes that do not exist. existing is called after the cache is read, so that
// a sandbox that starts meanwhile is not affected.
func (n *Network) ReleaseAll(ctx context.Context, existing func() (map[string]bool, error)) error {
	attached, err := n.attachments("")
	if err != nil || len(attached) == 0 {
		return err
	}
	exists, err := existing()
	if err != nil {
		return err
	}
	var gone []*libcni.NetworkAttachment
	for _, a := range attached {
		if !exists[a.ContainerID] {
			gone = append(gone, a)
		}
	}
	return n.release(ctx, gone)
}

func (n *Network) release(ctx context.Context, attached []*libcni.NetworkAttachment) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var errs []error
	for _, a := range attached {
		errs = append(errs, n.detach(ctx, a, ""))
	}
	return errors.Join(errs...)
}
