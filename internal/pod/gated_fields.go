package pod

import (
	v1 "k8s.io/api/core/v1"
)

// gatedFields lists the fields of a pod that have an effect only while a feature gate is on,
// by the gate's name. This is the only place that drops them: packages that act on a pod read
// the field and need no gate of their own.
var gatedFields = []gatedField{
	{gate: "AtomicWriteVolumeUserFields", volume: fileUsers},
	{gate: "ContainerRestartRules", container: restartRules},
	{gate: "ContainerStopSignals", container: stopSignal, status: func(s *v1.ContainerStatus) { s.StopSignal = nil }},
	{gate: "EmptyDirVolumeMode", volume: emptyDirMode},
	{gate: "EnvFiles", container: envFiles},
	{gate: "GRPCContainerProbeTLS", container: probesOf(grpcMode)},
	{gate: "H2CContainerProbe", container: probesOf(httpProtocol)},
}

// gatedField finds what stands behind one gate. Each function but status returns how to clear
// the fields that are set, and must not change anything itself. All may be nil.
type gatedField struct {
	gate      string
	container func(*v1.Container, ContainerKind) []clearField
	volume    func(*v1.Volume) []clearField
	// status clears what the status of a container shows for this gate.
	status func(*v1.ContainerStatus)
}

type clearField func()

// GatedFields drops the fields of pods whose feature gates are off. The zero value drops none.
type GatedFields struct{ disabled []gatedField }

// NewGatedFields calls enabled once for each gate that has a field.
func NewGatedFields(enabled func(gate string) bool) GatedFields {
	var g GatedFields
	for _, field := range gatedFields {
		if !enabled(field.gate) {
			g.disabled = append(g.disabled, field)
		}
	}
	return g
}

// DropDisabled returns the pod without its disabled fields: the same pod where it has none,
// otherwise a copy.
func (g GatedFields) DropDisabled(p *v1.Pod) *v1.Pod {
	if len(g.find(p)) == 0 {
		return p
	}
	dropped := p.DeepCopy()
	for _, clear := range g.find(dropped) {
		clear()
	}
	return dropped
}

// DropDisabledStatus clears the disabled fields of a container's status.
func (g GatedFields) DropDisabledStatus(s *v1.ContainerStatus) {
	for _, field := range g.disabled {
		if field.status != nil {
			field.status(s)
		}
	}
}

// find returns how to clear the disabled fields that the pod sets.
func (g GatedFields) find(p *v1.Pod) (found []clearField) {
	for _, field := range g.disabled {
		if field.container != nil {
			for c, kind := range Containers(p) {
				found = append(found, field.container(c, kind)...)
			}
		}
		if field.volume != nil {
			for i := range p.Spec.Volumes {
				found = append(found, field.volume(&p.Spec.Volumes[i])...)
			}
		}
	}
	return found
}

// ifSet clears a pointer; nothing has to be cleared where it is nil.
func ifSet[T any](field **T) []clearField {
	if *field == nil {
		return nil
	}
	return []clearField{func() { *field = nil }}
}

// restartRules leaves a sidecar the policy that makes it one. Rules that restart all containers
// stay: a node without that feature does not declare it, and rejects the pod for that.
func restartRules(c *v1.Container, kind ContainerKind) (found []clearField) {
	var kept []v1.ContainerRestartRule
	for _, rule := range c.RestartPolicyRules {
		if rule.Action == v1.ContainerRestartRuleActionRestartAllContainers {
			kept = append(kept, rule)
		}
	}
	if len(kept) < len(c.RestartPolicyRules) {
		found = append(found, func() { c.RestartPolicyRules = kept })
	}
	if kind != Init || !IsSidecar(c) {
		found = append(found, ifSet(&c.RestartPolicy)...)
	}
	return found
}

func stopSignal(c *v1.Container, _ ContainerKind) []clearField {
	if c.Lifecycle == nil {
		return nil
	}
	return ifSet(&c.Lifecycle.StopSignal)
}

func envFiles(c *v1.Container, _ ContainerKind) (found []clearField) {
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
			found = append(found, ifSet(&c.Env[i].ValueFrom)...)
		}
	}
	return found
}

// probesOf finds a field in each probe of a container.
func probesOf(field func(*v1.Probe) []clearField) func(*v1.Container, ContainerKind) []clearField {
	return func(c *v1.Container, _ ContainerKind) (found []clearField) {
		for _, probe := range []*v1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if probe != nil {
				found = append(found, field(probe)...)
			}
		}
		return found
	}
}

func httpProtocol(probe *v1.Probe) []clearField {
	if probe.HTTPGet == nil {
		return nil
	}
	return ifSet(&probe.HTTPGet.Protocol)
}

func grpcMode(probe *v1.Probe) []clearField {
	if probe.GRPC == nil {
		return nil
	}
	return ifSet(&probe.GRPC.Mode)
}

func emptyDirMode(v *v1.Volume) []clearField {
	if v.EmptyDir == nil {
		return nil
	}
	return ifSet(&v.EmptyDir.Mode)
}

// fileUsers finds the fields that name owners of a volume's files.
func fileUsers(v *v1.Volume) (found []clearField) {
	for _, k := range kindsOf(v) {
		if k.fileUsers == nil {
			continue
		}
		for _, user := range k.fileUsers(v) {
			found = append(found, ifSet(user)...)
		}
	}
	return found
}
