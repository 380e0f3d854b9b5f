package serviceproxy

import (
	"context"
	"fmt"
	"time"

	packetfilter "github.com/google/nftables"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// table is that of kube-proxy.
	table = "kube-proxy"
	// subscribeRetry is how soon the kernel is asked for messages again when it has dropped some.
	subscribeRetry = time.Second
)

// restore writes all rules again when another program has deleted the table, such as with `nft flush ruleset`, until ctx
// is done. kube-proxy itself notices that when the next Service changes, or after an hour.
func (p *Proxy) restore(ctx context.Context) {
	missed := false
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.follow(ctx, missed); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "serviceproxy: follow nftables failed", "retry", subscribeRetry)
		}
		missed = true
	}, subscribeRetry)
}

// follow reads the kernel's messages about tables. If some were missed, it writes the rules first.
func (p *Proxy) follow(ctx context.Context, missed bool) error {
	kernel, err := packetfilter.New()
	if err != nil {
		return fmt.Errorf("connect to nftables: %w", err)
	}
	monitor := packetfilter.NewMonitor(packetfilter.WithMonitorObject(packetfilter.MonitorObjectTables))
	changes, err := kernel.AddGenerationalMonitor(monitor)
	if err != nil {
		return fmt.Errorf("subscribe to nftables: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = monitor.Close() })()
	if missed {
		p.writeAll()
	}
	for change := range changes {
		if err := change.GeneratedBy.Error; err != nil { // the monitor ends
			return fmt.Errorf("read from nftables: %w", err)
		}
		if deletes(change) {
			klog.FromContext(ctx).Info("serviceproxy: another program deleted the rules, restoring them")
			p.writeAll()
		}
	}
	return nil
}

// writeAll writes all rules. A change of topology is what makes kube-proxy do so.
func (p *Proxy) writeAll() {
	p.proxier.OnTopologyChange(map[string]string{corev1.LabelHostname: p.cfg.Node})
}

// deletes reports whether a change deletes the table, and does not create it again.
func deletes(change *packetfilter.MonitorEvents) bool {
	deleted := false
	for _, event := range change.Changes {
		if t, ok := event.Data.(*packetfilter.Table); ok && t.Name == table && t.Family == packetfilter.TableFamilyIPv4 {
			deleted = event.Type == packetfilter.MonitorEventTypeDelTable
		}
	}
	return deleted
}
