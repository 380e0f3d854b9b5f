// Package nodebinding is the admission plugin that binds pods to the only node, in place of a scheduler.
package nodebinding

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
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
// whose scheduling gates are not cleared.
func (p *plugin) Admit(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetResource().GroupResource() != api.Resource("pods") || attributes.GetSubresource() != "" {
		return nil
	}
	pod, ok := attributes.GetObject().(*api.Pod)
	if !ok || pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return nil
	}
	pod.Spec.NodeName = p.node
	return nil
}
