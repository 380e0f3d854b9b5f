// Package nodebinding is the admission plugin that binds pods to the only node, in place of a scheduler.
package nodebinding

import (
	"context"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// PluginName is the name of the plugin.
const PluginName = "NodeBinding"

// Register makes the plugin, which binds pods to the node of that name, known to plugins.
func Register(plugins *admission.Plugins, node string) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &plugin{Handler: admission.NewHandler(admission.Create), node: node}, nil
	})
}

type plugin struct {
	*admission.Handler
	node string
}

var _ admission.MutationInterface = (*plugin)(nil)

// Admit sets the node of a new pod. It leaves pods that have a node, that another scheduler binds, or
// whose scheduling gates are not cleared, or that are for another node.
func (p *plugin) Admit(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetResource().GroupResource() != api.Resource("pods") || attributes.GetSubresource() != "" {
		return nil
	}
	pod, ok := attributes.GetObject().(*api.Pod)
	if !ok || !p.admits(pod.Spec.Affinity) || pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return nil
	}
	pod.Spec.NodeName = p.node
	return nil
}

// admits reports whether an affinity admits the name of the node. The pods of a DaemonSet have one, also for a node
// object that another name of this machine has left.
func (p *plugin) admits(affinity *api.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term api.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchFields, func(field api.NodeSelectorRequirement) bool {
			named := slices.Contains(field.Values, p.node)
			return field.Key == metav1.ObjectNameField && named != (field.Operator == api.NodeSelectorOpIn)
		})
	})
}
