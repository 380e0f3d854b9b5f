package nodebinding

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/informers"
	api "k8s.io/kubernetes/pkg/apis/core"
	conversion "k8s.io/kubernetes/pkg/apis/core/v1"
)

// PluginName is the name of the admission plugin.
const PluginName = "NodeBinding"

// Register makes the plugin known to plugins. It must come after those that change what a pod requests.
func (b *Binding) Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &plugin{Handler: admission.NewHandler(admission.Create), binding: b}, nil
	})
}

type plugin struct {
	*admission.Handler
	binding *Binding
	failed  error // to watch
}

var (
	_ admission.MutationInterface                  = (*plugin)(nil)
	_ admission.ValidationInterface                = (*plugin)(nil)
	_ initializer.WantsExternalKubeInformerFactory = (*plugin)(nil)
)

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *plugin) SetExternalKubeInformerFactory(shared informers.SharedInformerFactory) {
	p.failed = p.binding.watch(shared)
	p.SetReadyFunc(func() bool {
		for _, synced := range p.binding.synced {
			if !synced() {
				return false
			}
		}
		return true
	})
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *plugin) ValidateInitialization() error { return p.failed }

// Admit sets the node of a new pod that fits.
func (p *plugin) Admit(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := newPod(attributes)
	if !ok || pod.Spec.NodeName != "" {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(attributes, fmt.Errorf("not yet ready to handle request"))
	}
	var v1 corev1.Pod
	if err := conversion.Convert_core_Pod_To_v1_Pod(pod.DeepCopy(), &v1, nil); err != nil {
		return fmt.Errorf("convert pod: %w", err)
	}
	v1.Namespace = attributes.GetNamespace()
	if !waits(&v1.Spec, p.binding.node) {
		return nil
	}
	key, _ := request.RequestInfoFrom(ctx) // one for each request
	if p.binding.place(&v1, key, "") == bound {
		pod.Spec.NodeName = p.binding.node
		if attributes.IsDryRun() {
			p.binding.release(key)
		}
	}
	return nil
}

// Validate sees the pod of a request as it is stored.
func (p *plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, ok := newPod(attributes); ok {
		key, _ := request.RequestInfoFrom(ctx)
		p.binding.identify(key, pod.UID)
	}
	return nil
}

func newPod(attributes admission.Attributes) (*api.Pod, bool) {
	if attributes.GetResource().GroupResource() != api.Resource("pods") || attributes.GetSubresource() != "" {
		return nil, false
	}
	pod, ok := attributes.GetObject().(*api.Pod)
	return pod, ok
}
