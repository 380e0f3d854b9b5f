package dra

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
)

const (
	// defaultHealthTimeout is how long a report is valid if it contains no timeout.
	defaultHealthTimeout = 30 * time.Second
	// maxHealthTimeout keeps a report from overflowing time.Duration.
	maxHealthTimeout = 24 * 365 * time.Hour
	// maxDevices is the number of devices per driver whose health is stored: a driver that
	// keeps reporting new names must not fill memory and disk.
	maxDevices = 16384
)

// deviceHealth is the last report on a device, in the reference kubelet's checkpoint format.
type deviceHealth struct {
	PoolName           string
	DeviceName         string
	Health             v1.ResourceHealthStatus
	LastUpdated        time.Time
	HealthCheckTimeout time.Duration
	Message            string
}

// driverHealth is the health of a driver's devices, by deviceKey.
type driverHealth struct{ Devices map[string]deviceHealth }

// deviceKey identifies a device of a driver. Device names contain no slash.
func deviceKey(pool, device string) string { return pool + "/" + device }

func newDeviceHealth(report *healthv1.DeviceHealth, now time.Time) deviceHealth {
	h := deviceHealth{
		PoolName: report.GetDevice().GetPoolName(), DeviceName: report.GetDevice().GetDeviceName(),
		Health: v1.ResourceHealthStatusUnknown, LastUpdated: now, HealthCheckTimeout: defaultHealthTimeout, Message: truncateMessage(report.GetMessage()),
	}
	switch report.GetHealth() {
	case healthv1.HealthStatus_HEALTHY:
		h.Health = v1.ResourceHealthStatusHealthy
	case healthv1.HealthStatus_UNHEALTHY:
		h.Health = v1.ResourceHealthStatusUnhealthy
	}
	if s := report.GetHealthCheckTimeoutSeconds(); s > 0 {
		h.HealthCheckTimeout = time.Duration(min(s, int64(maxHealthTimeout/time.Second))) * time.Second
	}
	return h
}

// truncateMessage truncates a message to the API's limit.
func truncateMessage(message string) string {
	if len(message) <= v1.ResourceHealthMessageMaxLength {
		return message
	}
	return strings.ToValidUTF8(message[:v1.ResourceHealthMessageMaxLength-3], "") + "..."
}

// equal compares everything but the time of the report.
func (h deviceHealth) equal(other deviceHealth) bool {
	return h.Health == other.Health && h.Message == other.Message && h.HealthCheckTimeout == other.HealthCheckTimeout
}

func (h deviceHealth) expires() time.Time {
	if h.HealthCheckTimeout <= 0 {
		return h.LastUpdated.Add(defaultHealthTimeout)
	}
	return h.LastUpdated.Add(h.HealthCheckTimeout)
}

// recordHealth stores a driver's report, which may cover only some of its devices.
func (m *Manager) recordHealth(d *driver, reports []*healthv1.DeviceHealth) {
	now := m.deps.Clock.Now()
	m.mu.Lock()
	if !slices.Contains(m.drivers[d.name], d) { // deregistered meanwhile
		m.mu.Unlock()
		return
	}
	d.reportsHealth = true
	known := m.health[d.name].Devices
	if known == nil {
		known = map[string]deviceHealth{}
		m.health[d.name] = driverHealth{Devices: known}
	}
	changed, ignored := map[string]bool{}, 0
	for _, report := range reports {
		h := newDeviceHealth(report, now)
		key := deviceKey(h.PoolName, h.DeviceName)
		before, ok := known[key]
		switch {
		case len(h.PoolName) > resourceapi.PoolNameMaxLength || len(h.DeviceName) > validation.DNS1123LabelMaxLength,
			!ok && len(known) >= maxDevices:
			ignored++
			continue
		case !ok || !before.equal(h):
			changed[key] = true
		}
		known[key] = h
	}
	pods := m.podsUsingLocked(d.name, changed)
	m.mu.Unlock()
	if ignored > 0 {
		m.deps.Log.Error("dra: driver reports too many devices or too long names, ignoring some", "driver", d.name, "limit", maxDevices, "ignored", ignored)
	}
	if len(changed) > 0 {
		m.saveHealth()
		m.healthChanged.Notify()
		m.wake(pods)
	}
}

// dropHealth drops the reports of a driver whose health stream ended, unless another driver of
// the same name reports health.
func (m *Manager) dropHealth(d *driver) {
	m.mu.Lock()
	d.reportsHealth = false
	reported, ok := m.health[d.name]
	if !ok || slices.ContainsFunc(m.drivers[d.name], func(other *driver) bool { return other.reportsHealth }) {
		m.mu.Unlock()
		return
	}
	delete(m.health, d.name)
	pods := m.podsUsingLocked(d.name, devicesWithHealth(reported))
	m.mu.Unlock()
	m.saveHealth()
	m.wake(pods)
}

// devicesWithHealth returns the devices whose health is known.
func devicesWithHealth(reported driverHealth) map[string]bool {
	all := map[string]bool{}
	for key, h := range reported.Devices {
		if h.Health != v1.ResourceHealthStatusUnknown {
			all[key] = true
		}
	}
	return all
}

// podsUsingLocked returns the pods that use any of a driver's devices.
func (m *Manager) podsUsingLocked(driver string, devices map[string]bool) map[types.UID]bool {
	pods := map[types.UID]bool{}
	if len(devices) == 0 {
		return pods
	}
	for _, c := range m.claims {
		if slices.ContainsFunc(c.DriverState[driver].Devices, func(d device) bool { return devices[deviceKey(d.PoolName, d.DeviceName)] }) {
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

// Health returns the health of the devices of a container's claims, for the pod's status.
func (m *Manager) Health(p *v1.Pod, container string) []v1.ResourceStatus {
	i := slices.IndexFunc(p.Spec.Containers, func(c v1.Container) bool { return c.Name == container })
	if i < 0 || len(p.Spec.Containers[i].Resources.Claims) == 0 {
		return nil
	}
	all, err := claimRefs(p)
	if err != nil { // no claim is prepared either
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var statuses []v1.ResourceStatus
	for _, used := range p.Spec.Containers[i].Resources.Claims {
		for _, ref := range all {
			if ref.name != used.Name || m.claims[ref.key] == nil {
				continue
			}
			s := v1.ResourceStatus{Name: v1.ResourceName("claim:" + used.Name)}
			if used.Request != "" {
				s.Name += v1.ResourceName("/" + used.Request)
			}
			if s.Resources = m.requestHealthLocked(m.claims[ref.key], used.Request); len(s.Resources) > 0 {
				statuses = append(statuses, s)
			}
		}
	}
	return statuses
}

// requestHealthLocked returns the health of the devices of one request, or of the whole claim if
// it is empty. It merges devices with the same CDI id.
func (m *Manager) requestHealthLocked(c *claim, request string) []v1.ResourceHealth {
	request, _, _ = strings.Cut(request, "/") // without the subrequest
	var all []v1.ResourceHealth
	for _, driver := range slices.Sorted(maps.Keys(c.DriverState)) {
		for _, d := range c.DriverState[driver].Devices {
			if !d.satisfies(request) {
				continue
			}
			health := v1.ResourceHealth{ResourceID: v1.ResourceID(driver + "/" + deviceKey(d.PoolName, d.DeviceName)), Health: v1.ResourceHealthStatusUnknown}
			if len(d.CDIDeviceIDs) > 0 {
				health.ResourceID = v1.ResourceID(d.CDIDeviceIDs[0])
			}
			if slices.ContainsFunc(all, func(h v1.ResourceHealth) bool { return h.ResourceID == health.ResourceID }) {
				continue
			}
			if h, ok := m.health[driver].Devices[deviceKey(d.PoolName, d.DeviceName)]; ok {
				health.Health = h.Health
				if m.cfg.HealthMessages && h.Message != "" {
					health.Message = &h.Message
				}
			}
			all = append(all, health)
		}
	}
	return all
}
