package bed

import (
	"context"
	"errors"
	"fmt"
)

// Reboot stops everything in the box at once, as a power loss does, and starts containerd again. What is in
// /run, mounts, cgroups and the network are gone; files are kept. It does not start the kubelet.
func (b *Box) Reboot(ctx context.Context) error {
	b.bed.stopPodRoutes(b)
	errs := []error{b.init.kill()}
	for _, d := range []*daemon{b.kubelet, b.containerd} {
		if d != nil {
			<-d.done
		}
	}
	errs = append(errs, b.record(""))
	for _, h := range b.cgroups {
		errs = append(errs, removeCgroups(h.dir))
	}
	errs = append(errs, removeLink(b.bed.slot.nodeLink(b.host)))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("reboot %s: %w", b.name, err)
	}
	if err := b.start(ctx); err != nil {
		return fmt.Errorf("reboot %s: %w", b.name, err)
	}
	if err := b.bed.addPodRoutes(ctx, b); err != nil {
		return fmt.Errorf("reboot %s: %w", b.name, err)
	}
	return b.StartContainerd(ctx)
}
