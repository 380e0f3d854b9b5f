package pod

import (
	"log/slog"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Annotations for the source of a pod. Their names are part of the API: the API server, kubectl and
// the scheduler read them.
const (
	AnnotationSource = "kubernetes.io/config.source"
	AnnotationMirror = "kubernetes.io/config.mirror"
	AnnotationSeen   = "kubernetes.io/config.seen"
	AnnotationHash   = "kubernetes.io/config.hash"
)

// Source is where pods come from.
type Source string

const (
	SourceFile Source = "file"
	SourceHTTP Source = "http"
	SourceAPI  Source = "api"
)

// SourceOf returns the source of the pod's annotation; without it the pod comes from the API server.
func SourceOf(p *v1.Pod) Source {
	if s, ok := p.Annotations[AnnotationSource]; ok {
		return Source(s)
	}
	return SourceAPI
}

// IsMirror reports whether p is the mirror of a static pod.
func IsMirror(p *v1.Pod) bool {
	_, ok := p.Annotations[AnnotationMirror]
	return ok
}

// IsMirrorOf reports whether mirror is that of this version of a static pod.
func IsMirrorOf(mirror, static *v1.Pod) bool {
	return IsMirror(mirror) && mirror.Annotations[AnnotationMirror] == static.Annotations[AnnotationHash]
}

// IsStatic reports whether p comes from a file or URL rather than from the API server.
func IsStatic(p *v1.Pod) bool {
	return !IsMirror(p) && SourceOf(p) != SourceAPI
}

// criticalPriority is the lowest priority of the two built-in system classes.
const criticalPriority = 2_000_000_000

// IsCritical reports whether p may preempt other pods and is not evicted.
func IsCritical(p *v1.Pod) bool {
	return IsStatic(p) || IsMirror(p) || (p.Spec.Priority != nil && *p.Spec.Priority >= criticalPriority)
}

// Ref identifies a pod in logs, file names and events. The runtime has it too, for pods that are in no
// source.
type Ref struct {
	Namespace string
	Name      string
	UID       types.UID
}

// RefOf returns the Ref of p.
func RefOf(p *v1.Pod) Ref { return Ref{Namespace: p.Namespace, Name: p.Name, UID: p.UID} }

// FullName is unique among running pods; a static pod and its mirror have the same.
func (r Ref) FullName() string { return r.Name + "_" + r.Namespace }

// String returns the form of the reference kubelet's events and messages.
func (r Ref) String() string { return r.Name + "_" + r.Namespace + "(" + string(r.UID) + ")" }

// Attr identifies the pod in a log record as the reference kubelet does: pod="namespace/name" podUID="uid".
func (r Ref) Attr() slog.Attr { return slog.Any("", r) }

// LogValue is called only if the record is logged.
func (r Ref) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("pod", klog.KRef(r.Namespace, r.Name)), slog.String("podUID", string(r.UID)))
}

// FullName returns RefOf(p).FullName().
func FullName(p *v1.Pod) string { return RefOf(p).FullName() }

// LogDirName returns the name of the pod's directory below the pod log directory.
func (r Ref) LogDirName() string {
	return strings.Join([]string{r.Namespace, r.Name, string(r.UID)}, "_")
}

// ContainerKind is the list of the spec that has the container.
type ContainerKind int

const (
	Init ContainerKind = iota
	Main
	Ephemeral
)

// FieldPath returns the field path of a container, for the involved object of an event.
func FieldPath(p *v1.Pod, container string) string {
	kind, ok := KindOf(p, container)
	if !ok {
		return ""
	}
	list := map[ContainerKind]string{Init: "initContainers", Main: "containers", Ephemeral: "ephemeralContainers"}[kind]
	return "spec." + list + "{" + container + "}"
}

// KindOf returns the kind of the named container.
func KindOf(p *v1.Pod, container string) (kind ContainerKind, found bool) {
	for c, k := range Containers(p) {
		if c.Name == container {
			return k, true
		}
	}
	return 0, false
}

// FindContainer returns the named container of the spec, nil if there is none.
func FindContainer(p *v1.Pod, name string) *v1.Container {
	for c := range Containers(p) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Containers yields every container of the spec: init, then main, then ephemeral.
// Init and main containers alias the spec; an ephemeral one is a copy.
func Containers(p *v1.Pod) func(yield func(*v1.Container, ContainerKind) bool) {
	return func(yield func(*v1.Container, ContainerKind) bool) {
		for i := range p.Spec.InitContainers {
			if !yield(&p.Spec.InitContainers[i], Init) {
				return
			}
		}
		for i := range p.Spec.Containers {
			if !yield(&p.Spec.Containers[i], Main) {
				return
			}
		}
		for i := range p.Spec.EphemeralContainers {
			c := v1.Container(p.Spec.EphemeralContainers[i].EphemeralContainerCommon)
			if !yield(&c, Ephemeral) {
				return
			}
		}
	}
}

// IsSidecar reports whether an init container is a sidecar: its restart policy is Always.
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// EventRef returns the involved object of an event about the pod or, if container is not empty, about
// that container.
func EventRef(p *v1.Pod, container string) *v1.ObjectReference {
	ref := &v1.ObjectReference{
		Kind:            "Pod",
		APIVersion:      "v1",
		Namespace:       p.Namespace,
		Name:            p.Name,
		UID:             p.UID,
		ResourceVersion: p.ResourceVersion,
	}
	if container != "" {
		ref.FieldPath = FieldPath(p, container)
	}
	return ref
}

// WithOrigin returns a copy of annotations with those for the source of a pod and the time when it was first seen.
func WithOrigin(annotations map[string]string, source Source, seen string) map[string]string {
	all := make(map[string]string, len(annotations)+2)
	maps.Copy(all, annotations)
	all[AnnotationSource], all[AnnotationSeen] = string(source), seen
	return all
}
