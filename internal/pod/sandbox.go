package pod

import v1 "k8s.io/api/core/v1"

// SandboxNeeded reports whether the pod must be given a sandbox before a container of it
// can start, the attempt number of that sandbox, and what is wrong with the one it has, in
// the words that the pod's conditions use.
func SandboxNeeded(p *v1.Pod, o *Observed) (needed bool, attempt uint32, why string) {
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
		why = "multiple pod sandboxes are ready and need to be reconciled"
	case !newest.Ready:
		why = "pod sandbox is not ready"
	case newest.HostNetwork != p.Spec.HostNetwork:
		why = "network namespace mode changed and sandbox needs to be recreated"
	case !p.Spec.HostNetwork && len(newest.IPs) == 0:
		why = "pod sandbox has no IP address"
	default:
		return false, newest.Attempt, ""
	}
	return true, newest.Attempt + 1, why
}

// Current returns the newest instance of the named container if it lives in the newest
// sandbox: those of an earlier one can neither be adopted nor count for what follows.
func (o *Observed) Current(name string) *Container {
	if latest := o.Latest(name); latest != nil && o.inSandbox(latest) {
		return latest
	}
	return nil
}

// Begun reports whether any main container was made in the newest sandbox, which is only
// done once the init containers have done their part.
func (o *Observed) Begun(p *v1.Pod) bool {
	for i := range p.Spec.Containers {
		if o.Current(p.Spec.Containers[i].Name) != nil {
			return true
		}
	}
	return false
}

// Strays returns containers that hold, or may hold, a process and should not: those of an
// earlier sandbox, and those that a newer instance has taken the place of.
func (o *Observed) Strays() []Container {
	var strays []Container
	for _, c := range o.Live() {
		if latest := o.Current(c.Name); latest == nil || latest.ID != c.ID {
			strays = append(strays, c)
		}
	}
	return strays
}

func (o *Observed) inSandbox(c *Container) bool {
	sandbox := o.Sandbox()
	return sandbox != nil && o.SandboxOf(c) == sandbox.ID
}

// SandboxOf names the sandbox that a container is in, empty where it is not known. Time
// speaks only where the runtime did not: the machine's clock may be set back. A pod has one
// sandbox at a time, so it is the newest that is not younger than the container.
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
