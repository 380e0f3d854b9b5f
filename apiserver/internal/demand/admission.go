package demand

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// PluginName is the name of the admission plugin.
const PluginName = "ControllerDemand"

// Register makes the plugin known to plugins.
func (d *Demand) Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), demand: d}, nil
	})
}

// plugin admits every request. A controller that is started before the object is stored sees it come.
type plugin struct {
	*admission.Handler
	demand *Demand
}

var _ admission.ValidationInterface = (*plugin)(nil)

// Validate adds the controllers that a request needs.
func (p *plugin) Validate(_ context.Context, request admission.Attributes, _ admission.ObjectInterfaces) error {
	if request.GetSubresource() != "" || request.IsDryRun() {
		return nil
	}
	if request.GetOperation() == admission.Delete {
		if options, ok := request.GetOperationOptions().(*metav1.DeleteOptions); ok && waitsForCollector(options) {
			p.demand.Add(GarbageCollector)
		}
		return nil
	}
	if object, err := meta.Accessor(request.GetObject()); err == nil { // else it has no metadata
		p.demand.Add(of(request.GetResource().GroupResource(), object)...)
	}
	return nil
}

// waitsForCollector reports whether a deletion leaves the object with a finalizer of the garbage collector.
func waitsForCollector(options *metav1.DeleteOptions) bool {
	policy := options.PropagationPolicy
	//lint:ignore SA1019 clients may still send it
	return options.OrphanDependents != nil || policy != nil && *policy != metav1.DeletePropagationBackground
}
