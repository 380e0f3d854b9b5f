package pod

import (
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Origin is where a static pod comes from.
type Origin struct {
	Source   Source // SourceFile or SourceHTTP
	Location string // path or URL, as configured
	NodeName string
}

// MakeStatic turns the pod of a manifest into a static pod of this node: it sets defaults, adds the
// node's name to the pod's, and sets a UID that depends on content and origin. runs reports whether the
// runtime has a pod with a UID; it may be nil. MakeStatic changes p and does not validate it.
func MakeStatic(p *v1.Pod, origin Origin, runs func(types.UID) bool) {
	p.TypeMeta.Kind, p.TypeMeta.APIVersion = "", ""
	Default(p)
	if p.UID == "" {
		p.UID = liveUID(p, origin, runs)
	}
	p.Name = p.Name + "-" + strings.ToLower(origin.NodeName)
	setDefault(&p.Namespace, v1.NamespaceDefault)
	p.Spec.NodeName = origin.NodeName

	p.Annotations = maps.Clone(p.Annotations)
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[AnnotationHash] = string(p.UID)
	p.Annotations[AnnotationSource] = string(origin.Source)
	if origin.Source == SourceFile {
		tolerateNoExecute(&p.Spec)
	}
	p.Status.Phase = v1.PodPending
}

// tolerateNoExecute adds a toleration for all NoExecute taints, as a static pod cannot run on another
// node.
func tolerateNoExecute(spec *v1.PodSpec) {
	everything := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for _, t := range spec.Tolerations {
		if t.MatchToleration(&everything) {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, everything)
}
