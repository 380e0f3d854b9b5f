package csi

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
)

// client is a connection to a driver for one step. It is not kept: a driver that was
// restarted is reached at once, and an idle node has no connections.
type client struct {
	node csi.NodeClient
	conn *grpc.ClientConn
}

// dial reaches a driver; each call is measured under its name.
func (p *Plugin) dial(name, endpoint string) (*client, error) {
	conn, err := grpc.NewClient("passthrough:///"+endpoint,
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", endpoint)
		}),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			began := p.deps.Clock.Now()
			err := call(ctx, method, request, reply, conn, opts...)
			if p.deps.Called != nil {
				p.deps.Called(name, method, status.Code(err).String(), p.deps.Clock.Since(began))
			}
			return err
		}))
	if err != nil {
		return nil, fmt.Errorf("dial CSI driver: %w", err)
	}
	return &client{node: csi.NewNodeClient(conn), conn: conn}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// capabilities is what a driver says it can do.
type capabilities map[csi.NodeServiceCapability_RPC_Type]bool

const (
	canStage       = csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
	canExpand      = csi.NodeServiceCapability_RPC_EXPAND_VOLUME
	canMeasure     = csi.NodeServiceCapability_RPC_GET_VOLUME_STATS
	canTellHealth  = csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH
	canMountGroup  = csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP
	canShareWrites = csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER
)

func (c *client) capabilities(ctx context.Context) (capabilities, error) {
	got, err := c.node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return nil, err
	}
	able := capabilities{}
	for _, capability := range got.GetCapabilities() {
		if rpc := capability.GetRpc(); rpc != nil {
			able[rpc.GetType()] = true
		}
	}
	return able, nil
}

// access translates the API's access mode.
func (able capabilities) access(mode v1.PersistentVolumeAccessMode) *csi.VolumeCapability_AccessMode {
	to := csi.VolumeCapability_AccessMode_UNKNOWN
	switch mode {
	case v1.ReadWriteOnce:
		to = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
		if able[canShareWrites] {
			to = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
	case v1.ReadWriteOncePod:
		to = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
		if able[canShareWrites] {
			to = csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
	case v1.ReadOnlyMany:
		to = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case v1.ReadWriteMany:
		to = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	return &csi.VolumeCapability_AccessMode{Mode: to}
}

// mountable describes a volume with a file system.
func (able capabilities) mountable(mode v1.PersistentVolumeAccessMode, fsType string, flags []string, group *int64) *csi.VolumeCapability {
	mount := &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: flags}
	if group != nil && able[canMountGroup] {
		mount.VolumeMountGroup = strconv.FormatInt(*group, 10)
	}
	return &csi.VolumeCapability{AccessMode: able.access(mode), AccessType: &csi.VolumeCapability_Mount{Mount: mount}}
}

// raw describes a volume that is handed over as a device.
func (able capabilities) raw(mode v1.PersistentVolumeAccessMode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: able.access(mode),
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
}

// final reports whether the error says that the driver is not at work on the volume any
// more. After any other it may be, and what was made for it must stay.
func final(err error) bool {
	st, ok := status.FromError(err)
	if !ok {
		return false
	}
	switch st.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return false
	}
	return true
}
