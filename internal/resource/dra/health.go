package dra

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
)

const (
	// lease is for how long a driver's word on a device is good where it does not say.
	lease = 30 * time.Second
	// mostDevices of one driver are kept: a driver that goes on inventing names must not
	// fill the memory and the disk.
	mostDevices = 16384
)

// deviceHealth is what a driver last said of a device, as the reference kubelet records it.
type deviceHealth struct {
	PoolName           string
	DeviceName         string
	Health             v1.ResourceHealthStatus
	LastUpdated        time.Time
	HealthCheckTimeout time.Duration
	Message            string
}

// driverHealth is all that one driver said, by the devices' ids.
type driverHealth struct{ Devices map[string]deviceHealth }

// id names a device among those of its driver; the names of devices have no slash.
func id(pool, device string) string { return pool + "/" + device }

func healthOf(told *healthv1.DeviceHealth, now time.Time) deviceHealth {
	h := deviceHealth{
		PoolName: told.GetDevice().GetPoolName(), DeviceName: told.GetDevice().GetDeviceName(),
		Health: v1.ResourceHealthStatusUnknown, LastUpdated: now, HealthCheckTimeout: lease, Message: short(told.GetMessage()),
	}
	switch told.GetHealth() {
	case healthv1.HealthStatus_HEALTHY:
		h.Health = v1.ResourceHealthStatusHealthy
	case healthv1.HealthStatus_UNHEALTHY:
		h.Health = v1.ResourceHealthStatusUnhealthy
	}
	if s := told.GetHealthCheckTimeoutSeconds(); s > 0 {
		h.HealthCheckTimeout = time.Duration(s) * time.Second
	}
	return h
}

// short cuts a message to what the API takes.
func short(message string) string {
	if len(message) <= v1.ResourceHealthMessageMaxLength {
		return message
	}
	return strings.ToValidUTF8(message[:v1.ResourceHealthMessageMaxLength-3], "") + "..."
}

// says: the same is shown of both, for as long.
func (h deviceHealth) says(same deviceHealth) bool {
	return h.Health == same.Health && h.Message == same.Message && h.HealthCheckTimeout == same.HealthCheckTimeout
}

func (h deviceHealth) due() time.Time {
	if h.HealthCheckTimeout <= 0 {
		return h.LastUpdated.Add(lease)
	}
	return h.LastUpdated.Add(h.HealthCheckTimeout)
}

// heard takes note of a driver's report, which may be of some of its devices only.
func (m *Manager) heard(d *driver, told []*healthv1.DeviceHealth) {
	now := m.deps.Clock.Now()
	m.mu.Lock()
	if !slices.Contains(m.drivers[d.name], d) { // it has left meanwhile
		m.mu.Unlock()
		return
	}
	d.reports = true
	known := m.health[d.name].Devices
	if known == nil {
		known = map[string]deviceHealth{}
		m.health[d.name] = driverHealth{Devices: known}
	}
	changed, ignored := map[string]bool{}, 0
	for _, one := range told {
		h := healthOf(one, now)
		at := id(h.PoolName, h.DeviceName)
		before, ok := known[at]
		switch {
		case !ok && len(known) >= mostDevices:
			ignored++
			continue
		case !ok || !before.says(h):
			changed[at] = true
		}
		known[at] = h
	}
	pods := m.using(d.name, changed)
	m.mu.Unlock()
	if ignored > 0 {
		m.deps.Log.Error("driver tells the health of too many devices; some are left out", "driver", d.name, "limit", mostDevices, "left out", ignored)
	}
	if len(changed) > 0 {
		m.saveHealth()
		m.told.Notify()
		m.wake(pods)
	}
}

// silent forgets what a driver said: it can no longer be asked. One that replaces it, or
// that it replaces, may speak for its devices.
func (m *Manager) silent(d *driver) {
	m.mu.Lock()
	d.reports = false
	said, ok := m.health[d.name]
	if !ok || slices.ContainsFunc(m.drivers[d.name], func(other *driver) bool { return other.reports }) {
		m.mu.Unlock()
		return
	}
	delete(m.health, d.name)
	pods := m.using(d.name, known(said))
	m.mu.Unlock()
	m.saveHealth()
	m.wake(pods)
}

// known are the devices of which something is known.
func known(said driverHealth) map[string]bool {
	all := map[string]bool{}
	for at, h := range said.Devices {
		if h.Health != v1.ResourceHealthStatusUnknown {
			all[at] = true
		}
	}
	return all
}

// using finds the pods that have any of a driver's devices. Called under the lock.
func (m *Manager) using(driver string, devices map[string]bool) map[types.UID]bool {
	pods := map[types.UID]bool{}
	if len(devices) == 0 {
		return pods
	}
	for _, c := range m.claims {
		if slices.ContainsFunc(c.DriverState[driver].Devices, func(d device) bool { return devices[id(d.PoolName, d.DeviceName)] }) {
			for uid := range c.PodUIDs {
				pods[types.UID(uid)] = true
			}
		}
	}
	return pods
}

func (m *Manager) wake(pods map[types.UID]bool) {
	for uid := range pods {
		m.deps.Wake(uid)
	}
}

// Health says how the devices of a container's claims are, for its status.
func (m *Manager) Health(p *v1.Pod, container string) []v1.ResourceStatus {
	i := slices.IndexFunc(p.Spec.Containers, func(c v1.Container) bool { return c.Name == container })
	if i < 0 || len(p.Spec.Containers[i].Resources.Claims) == 0 {
		return nil
	}
	all, err := uses(p)
	if err != nil { // then nothing is prepared either
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var shown []v1.ResourceStatus
	for _, named := range p.Spec.Containers[i].Resources.Claims {
		for _, u := range all {
			if u.name != named.Name || m.claims[u.key] == nil {
				continue
			}
			one := v1.ResourceStatus{Name: v1.ResourceName("claim:" + named.Name)}
			if named.Request != "" {
				one.Name += v1.ResourceName("/" + named.Request)
			}
			if one.Resources = m.healthIn(m.claims[u.key], named.Request); len(one.Resources) > 0 {
				shown = append(shown, one)
			}
		}
	}
	return shown
}

// healthIn is that of the devices of one request, of all if it is empty. Devices that the
// runtime knows by the same name are one. Called under the lock.
func (m *Manager) healthIn(c *claim, request string) []v1.ResourceHealth {
	request, _, _ = strings.Cut(request, "/") // without the choice that was made within it
	var all []v1.ResourceHealth
	for _, driver := range slices.Sorted(maps.Keys(c.DriverState)) {
		for _, d := range c.DriverState[driver].Devices {
			if !d.serves(request) {
				continue
			}
			one := v1.ResourceHealth{ResourceID: v1.ResourceID(driver + "/" + id(d.PoolName, d.DeviceName)), Health: v1.ResourceHealthStatusUnknown}
			if len(d.CDIDeviceIDs) > 0 {
				one.ResourceID = v1.ResourceID(d.CDIDeviceIDs[0])
			}
			if slices.ContainsFunc(all, func(h v1.ResourceHealth) bool { return h.ResourceID == one.ResourceID }) {
				continue
			}
			if h, ok := m.health[driver].Devices[id(d.PoolName, d.DeviceName)]; ok {
				one.Health = h.Health
				if m.cfg.HealthMessages && h.Message != "" {
					one.Message = &h.Message
				}
			}
			all = append(all, one)
		}
	}
	return all
}
