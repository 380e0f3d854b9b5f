package pod

import v1 "k8s.io/api/core/v1"

// SandboxNeeded reports whether the pod needs a new sandbox before a container can start, the attempt
// number of that sandbox, and the reason, as the pod's conditions show it.
func SandboxNeeded(p *v1.Pod, o *Observed) (needed bool, attempt uint32, reason string) {
	newest := o.Sandbox()
	if newest == nil {
		return true, 0, "no pod sandbox exists"
	}
	ready := 0
	for _, s := range o.Sandboxes {
		if s.Ready {
			ready++
		}
	}
	switch {
	case ready > 1:
		reason = "multiple pod sandboxes are ready and need to be reconciled"
	case !newest.Ready:
		reason = "pod sandbox is not ready"
	case newest.HostNetwork != p.Spec.HostNetwork:
		reason = "network namespace mode changed and sandbox needs to be recreated"
	case !p.Spec.HostNetwork && len(newest.IPs) == 0:
		reason = "pod sandbox has no IP address"
	default:
		return false, newest.Attempt, ""
	}
	return true, newest.Attempt + 1, reason
}

// Current returns the newest instance of the named container if it is in the newest sandbox, otherwise
// nil.
func (o *Observed) Current(name string) *Container {
	if latest := o.Latest(name); latest != nil && o.inSandbox(latest) {
		return latest
	}
	return nil
}

// MainCreated reports whether the newest sandbox has any main container. The init containers have
// completed then.
func (o *Observed) MainCreated(p *v1.Pod) bool {
	for i := range p.Spec.Containers {
		if o.Current(p.Spec.Containers[i].Name) != nil {
			return true
		}
	}
	return false
}

// Superseded returns containers that run, or may run, and should not: those of an earlier sandbox, and
// those that have a newer instance.
func (o *Observed) Superseded() []Container {
	var superseded []Container
	for _, c := range o.Live() {
		if latest := o.Current(c.Name); latest == nil || latest.ID != c.ID {
			superseded = append(superseded, c)
		}
	}
	return superseded
}

func (o *Observed) inSandbox(c *Container) bool {
	sandbox := o.Sandbox()
	return sandbox != nil && o.SandboxOf(c) == sandbox.ID
}

// SandboxOf returns the id of a container's sandbox, "" if it is unknown. It compares times only if the
// runtime does not report the sandbox, as the clock may be set back: then it is the newest sandbox that
// is not younger than the container.
func (o *Observed) SandboxOf(c *Container) string {
	if c.SandboxID != "" {
		return c.SandboxID
	}
	for _, s := range o.Sandboxes {
		if !s.CreatedAt.After(c.CreatedAt) {
			return s.ID
		}
	}
	return ""
}
