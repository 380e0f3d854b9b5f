package agent

import (
	"math/rand/v2"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/quota"
)

func (a *Agent) makeVolumes() (err error) {
	if err := a.makeCSI(); err != nil {
		return err
	}
	deps := volume.Deps{
		Objects:     a.api.objects,
		Tokens:      a.api.tokens,
		Allocatable: a.machine.node.Allocatable,
		Kinds:       []plugin.Plugin{a.pods.csi},
		Events:      a.api.events,
		Meters:      a.metrics.Volume(),
		Jitter:      rand.Float64,
		Clock:       a.clock,
		Log:         a.log,

		HealthChanged: func(uid types.UID) { a.pods.workers.Wake(uid) },
	}
	if a.api.claims != nil {
		deps.Trust, deps.Certificates = a.api.trust, a.api.certificates
		deps.Claims, deps.Node = a.api.claims, a.watchedNode
		deps.InUseChanged = a.machine.node.Poke
		a.api.node.OnChange(func() { a.pods.volumes.NodeChanged() })
	}
	if a.api.claims != nil && *a.cfg.Kubelet.EnableControllerAttachDetach {
		deps.Attachments = a.machine.attachments
	}
	if a.cfg.Features.LocalStorageCapacityIsolationFSQuotaMonitoring {
		deps.Quotas, err = quota.New(quota.Config{PodsDir: filepath.Join(a.cfg.Flags.RootDir, "pods")}, a.log)
		if err != nil {
			return err
		}
	}
	if a.machine.labels {
		deps.Labels = mounts.Policy{}
	}
	var health time.Duration
	if a.cfg.Features.CSIVolumeHealth {
		if health = a.cfg.Kubelet.VolumeStatsAggPeriod.Duration; health <= 0 {
			health = time.Minute
		}
	}
	a.pods.volumes, err = volume.New(volume.Config{
		HealthPeriod: health,
		RootDir:      a.cfg.Flags.RootDir, NodeName: a.name, DriverDir: a.cfg.Kubelet.VolumePluginDir,
		SELinux: a.machine.labels, SELinuxOnePodOnly: !a.cfg.Features.SELinuxMount,
		BindMountOptions: a.cfg.Features.VolumeBindMountOptions,
	}, deps)
	return err
}
