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

	"swiftlet/internal/boundedio"
)

// client is a connection to a driver for one operation. It is not reused: so a restarted driver is
// reached at once, and an idle node has no connections.
type client struct {
	node csi.NodeClient
	conn *grpc.ClientConn
}

// dial connects to a driver. Its name labels the metrics of each call.
func (p *Plugin) dial(name, endpoint string) (*client, error) {
	conn, err := grpc.NewClient("passthrough:///"+endpoint, append(boundedio.DialOptions(),
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", endpoint)
		}),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			began := p.deps.Clock.Now()
			err := call(ctx, method, request, reply, conn, opts...)
			if p.deps.ObserveCall != nil {
				p.deps.ObserveCall(name, method, status.Code(err).String(), p.deps.Clock.Since(began))
			}
			return err
		}))...)
	if err != nil {
		return nil, fmt.Errorf("dial CSI driver: %w", err)
	}
	return &client{node: csi.NewNodeClient(conn), conn: conn}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// capabilities are the node capabilities of a driver.
type capabilities map[csi.NodeServiceCapability_RPC_Type]bool

const (
	canStage        = csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
	canExpand       = csi.NodeServiceCapability_RPC_EXPAND_VOLUME
	canMeasure      = csi.NodeServiceCapability_RPC_GET_VOLUME_STATS
	canReportHealth = csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH
	canMountGroup   = csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP
	canShareWrites  = csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER
)

func (c *client) capabilities(ctx context.Context) (capabilities, error) {
	got, err := c.node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return nil, err
	}
	caps := capabilities{}
	for _, capability := range got.GetCapabilities() {
		if rpc := capability.GetRpc(); rpc != nil {
			caps[rpc.GetType()] = true
		}
	}
	return caps, nil
}

// access translates the API's access mode.
func (caps capabilities) access(mode v1.PersistentVolumeAccessMode) *csi.VolumeCapability_AccessMode {
	to := csi.VolumeCapability_AccessMode_UNKNOWN
	switch mode {
	case v1.ReadWriteOnce:
		to = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
		if caps[canShareWrites] {
			to = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
	case v1.ReadWriteOncePod:
		to = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
		if caps[canShareWrites] {
			to = csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
	case v1.ReadOnlyMany:
		to = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case v1.ReadWriteMany:
		to = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	return &csi.VolumeCapability_AccessMode{Mode: to}
}

// mountable is the capability of a volume with a file system.
func (caps capabilities) mountable(mode v1.PersistentVolumeAccessMode, fsType string, flags []string, group *int64) *csi.VolumeCapability {
	mount := &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: flags}
	if group != nil && caps[canMountGroup] {
		mount.VolumeMountGroup = strconv.FormatInt(*group, 10)
	}
	return &csi.VolumeCapability{AccessMode: caps.access(mode), AccessType: &csi.VolumeCapability_Mount{Mount: mount}}
}

// raw is the capability of a raw block volume.
func (caps capabilities) raw(mode v1.PersistentVolumeAccessMode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: caps.access(mode),
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
}

// isFinal reports whether the operation is certainly not in progress any more in the driver. After
// any other error its directories must stay.
func isFinal(err error) bool {
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
