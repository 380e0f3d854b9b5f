package pod

import (
	v1 "k8s.io/api/core/v1"
)

// Dialect says which of the newer fields of a pod count on this node; each stands behind a
// feature gate. A field that does not count is taken out before anybody acts on the pod, so
// that logic need not know of gates.
type Dialect struct {
	RestartRules bool // a container's own restart policy, and its rules
	EnvFiles     bool // variables read from a file
	EmptyDirMode bool // the mode of an emptyDir
	FileUsers    bool // owners of the files of ConfigMaps, Secrets and the like
	HTTP2Probes  bool // HTTP/2 without TLS
	GRPCTLS      bool // gRPC probes over TLS
}

// Read returns the pod as it counts here: the same one where nothing has to go.
func (d Dialect) Read(p *v1.Pod) *v1.Pod {
	if !d.strike(p, false) {
		return p
	}
	read := p.DeepCopy()
	d.strike(read, true)
	return read
}

// strike reports whether the pod has fields that do not count, and on request clears them.
func (d Dialect) strike(p *v1.Pod, clear bool) (found bool) {
	for c, kind := range Containers(p) {
		found = d.strikeRestart(c, kind, clear) || found
		found = d.strikeEnv(c.Env, clear) || found
		for _, probe := range []*v1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			found = probe != nil && d.strikeProbe(probe, clear) || found
		}
	}
	for i := range p.Spec.Volumes {
		if dir := p.Spec.Volumes[i].EmptyDir; dir != nil && !d.EmptyDirMode {
			found = strikeField(&dir.Mode, clear) || found
		}
		if !d.FileUsers {
			for _, user := range fileUsers(&p.Spec.Volumes[i]) {
				found = strikeField(user, clear) || found
			}
		}
	}
	return found
}

// fileUsers are the fields that name owners of a volume's files.
func fileUsers(v *v1.Volume) (users []**int64) {
	for _, k := range kindsOf(v) {
		if k.fileUsers != nil {
			users = append(users, k.fileUsers(v)...)
		}
	}
	return users
}

// strikeRestart leaves a sidecar what makes it one. Rules that restart all containers stay: a
// node without that feature does not declare it, and rejects the pod for that.
func (d Dialect) strikeRestart(c *v1.Container, kind ContainerKind, clear bool) (found bool) {
	if d.RestartRules {
		return false
	}
	var kept []v1.ContainerRestartRule
	for _, rule := range c.RestartPolicyRules {
		if rule.Action == v1.ContainerRestartRuleActionRestartAllContainers {
			kept = append(kept, rule)
		}
	}
	found = len(kept) < len(c.RestartPolicyRules)
	if clear {
		c.RestartPolicyRules = kept
	}
	if kind != Init || !IsSidecar(c) {
		found = strikeField(&c.RestartPolicy, clear) || found
	}
	return found
}

func (d Dialect) strikeEnv(env []v1.EnvVar, clear bool) (found bool) {
	for i := range env {
		if from := env[i].ValueFrom; from != nil && from.FileKeyRef != nil && !d.EnvFiles {
			found = true
			if clear {
				env[i].ValueFrom = nil
			}
		}
	}
	return found
}

func (d Dialect) strikeProbe(probe *v1.Probe, clear bool) (found bool) {
	if get := probe.HTTPGet; get != nil && !d.HTTP2Probes {
		found = strikeField(&get.Protocol, clear)
	}
	if grpc := probe.GRPC; grpc != nil && !d.GRPCTLS {
		found = strikeField(&grpc.Mode, clear) || found
	}
	return found
}

func strikeField[T any](field **T, clear bool) bool {
	if *field == nil {
		return false
	}
	if clear {
		*field = nil
	}
	return true
}
