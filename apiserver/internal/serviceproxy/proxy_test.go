package serviceproxy

import (
	"testing"

	packetfilter "github.com/google/nftables"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestServed: the Service of the API server has a rule of the agent's, and others may have a proxy of their own.
func TestServed(t *testing.T) {
	for name, row := range map[string]struct {
		service *corev1.Service
		served  bool
	}{
		"plain":                         {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, true},
		"kubernetes":                    {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}, false},
		"kubernetes_of_another":         {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kubernetes"}}, true},
		"of_another_proxy":              {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"service.kubernetes.io/service-proxy-name": "mine"}}}, false},
		"no_service_before_or_after_it": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ifServed(row.service) != nil; got != row.served {
				t.Errorf("served: %t", got)
			}
		})
	}
}

// TestDeletes: a table that is deleted and created in one change, such as by nft -f, has rules again.
func TestDeletes(t *testing.T) {
	event := func(kind packetfilter.MonitorEventType, family packetfilter.TableFamily, name string) *packetfilter.MonitorEvent {
		return &packetfilter.MonitorEvent{Type: kind, Data: &packetfilter.Table{Name: name, Family: family}}
	}
	const created, deleted = packetfilter.MonitorEventTypeNewTable, packetfilter.MonitorEventTypeDelTable
	for name, row := range map[string]struct {
		changes []*packetfilter.MonitorEvent
		want    bool
	}{
		"nothing":           {nil, false},
		"deleted":           {[]*packetfilter.MonitorEvent{event(deleted, packetfilter.TableFamilyIPv4, "kube-proxy")}, true},
		"flushed":           {[]*packetfilter.MonitorEvent{event(deleted, packetfilter.TableFamilyIPv4, "kube-proxy"), event(deleted, packetfilter.TableFamilyIPv4, "swiftlet")}, true},
		"created":           {[]*packetfilter.MonitorEvent{event(created, packetfilter.TableFamilyIPv4, "kube-proxy")}, false},
		"replaced":          {[]*packetfilter.MonitorEvent{event(deleted, packetfilter.TableFamilyIPv4, "kube-proxy"), event(created, packetfilter.TableFamilyIPv4, "kube-proxy")}, false},
		"another":           {[]*packetfilter.MonitorEvent{event(deleted, packetfilter.TableFamilyIPv4, "swiftlet")}, false},
		"of_another_family": {[]*packetfilter.MonitorEvent{event(deleted, packetfilter.TableFamilyIPv6, "kube-proxy")}, false},
		"not_about_a_table": {[]*packetfilter.MonitorEvent{{Type: deleted}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deletes(&packetfilter.MonitorEvents{Changes: row.changes}); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
