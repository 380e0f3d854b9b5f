package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/configmap"
	"swiftlet/internal/volume/content"
	"swiftlet/internal/volume/downwardapi"
	"swiftlet/internal/volume/emptydir"
	"swiftlet/internal/volume/fc"
	"swiftlet/internal/volume/flexvolume"
	"swiftlet/internal/volume/hostpath"
	"swiftlet/internal/volume/image"
	"swiftlet/internal/volume/iscsi"
	"swiftlet/internal/volume/local"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/nfs"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/projected"
	"swiftlet/internal/volume/scsi"
	"swiftlet/internal/volume/secret"
)

// newPlugins returns the built-in plugins. Deps.Plugins adds those with a part of their own.
func newPlugins(cfg Config, deps Deps, tools mounts.Tools, budget *content.Budget) []plugin.Plugin {
	emptyDirDeps := emptydir.Deps{Mounter: deps.Mounter, Allocatable: deps.Allocatable}
	if deps.Quotas != nil {
		emptyDirDeps.Quotas = deps.Quotas
	}
	emptyDir := emptydir.New(emptyDirDeps)
	common := content.Deps{EmptyDir: emptyDir, Clock: deps.Clock, Budget: budget}
	sources := projected.Deps{Objects: deps.Objects, Allocatable: deps.Allocatable}
	if deps.Tokens != nil {
		sources.Tokens = deps.Tokens
	}
	if deps.Trust != nil {
		sources.Trust = deps.Trust
	}
	if deps.Certificates != nil {
		sources.Certificates = deps.Certificates
	}
	host := scsi.Host{Sys: cfg.SysDir, Dev: cfg.DevDir, Runner: tools}
	return append([]plugin.Plugin{
		emptyDir,
		hostpath.Plugin{},
		image.Plugin{},
		configmap.New(deps.Objects, common),
		secret.New(deps.Objects, common),
		downwardapi.New(deps.Allocatable, common),
		projected.New(sources, common),
		nfs.New(nfs.Deps{Mounter: deps.Mounter, Tools: tools, Clock: deps.Clock}),
		local.New(local.Deps{RootDir: cfg.RootDir, Mounter: deps.Mounter, Disks: tools, Events: deps.Events}),
		fc.New(fc.Deps{RootDir: cfg.RootDir, Mounter: deps.Mounter, Tools: tools, Host: host}),
		iscsi.New(iscsi.Deps{RootDir: cfg.RootDir, Mounter: deps.Mounter, Tools: tools, Host: host, Secret: deps.secret, Clock: deps.Clock, Log: deps.Log}),
	}, deps.Plugins...)
}

func newDrivers(cfg Config, deps Deps, tools mounts.Tools) *flexvolume.Drivers {
	return flexvolume.New(
		flexvolume.Config{Dir: cfg.FlexVolumeDir, RootDir: cfg.RootDir, NodeName: cfg.NodeName, NodeAttaches: deps.Attachments == nil},
		flexvolume.Deps{Mounter: deps.Mounter, Disks: tools, Secret: deps.secret},
	)
}

// secret reads the Secret of a volume. Without an API server, only the Secrets of the pod are available.
func (d Deps) secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	if d.Claims == nil {
		return d.Objects.Secret(ctx, namespace, name)
	}
	return d.Claims.Secret(ctx, namespace, name)
}
