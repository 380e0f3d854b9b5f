// Package etcd runs an etcd member in this process. Only this process can reach it: it has no listener,
// and its gRPC server serves connections that Dial makes in memory.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

const (
	// memberName is stored in the data directory and must stay the same.
	memberName = "swiftlet"
	// connectionBuffer is the size of the buffer of each direction of a connection. The API server opens a
	// connection for every resource.
	connectionBuffer = 4 << 10
	// startLimit is long enough to replay the log of a crashed member on a slow disk.
	startLimit = 2 * time.Minute
	// progressInterval is how often a watch without events reports the revision that it has reached, which
	// the API server sends as a bookmark.
	progressInterval = time.Minute
	// history is how far back a client can watch, as with kube-apiserver.
	history = 5 * time.Minute
	// raftEntries is how many entries of the raft log stay in memory. A member without peers needs none of
	// them; the default is 5,000.
	raftEntries = 100
)

// Member is a running etcd member.
type Member struct {
	etcd     *embed.Etcd
	server   *grpc.Server
	listener *bufconn.Listener
	served   chan error
}

// Start opens the data directory, which it creates if it is missing, and returns when the member accepts
// writes. A write that was acknowledged is on disk.
func Start(ctx context.Context, dir string) (*Member, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	running, err := embed.StartEtcd(config(dir))
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	select {
	case <-running.Server.ReadyNotify():
	case err := <-running.Err():
		running.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	case <-ctx.Done():
		running.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", dir, ctx.Err())
	case <-time.After(startLimit):
		running.Close()
		return nil, fmt.Errorf("start etcd in %s: not ready after %s", dir, startLimit)
	}
	if err := syncDirectories(dir); err != nil {
		running.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	m := &Member{
		etcd: running, listener: bufconn.Listen(connectionBuffer), served: make(chan error, 1),
		server: v3rpc.Server(running.Server, nil, nil,
			grpc.ReadBufferSize(connectionBuffer), grpc.WriteBufferSize(connectionBuffer)),
	}
	go func() { m.served <- m.server.Serve(m.listener) }()
	return m, nil
}

// syncDirectories puts the directories of a new store on disk, and its entries in those above. etcd syncs files, and
// not all directories that it makes.
func syncDirectories(dir string) error {
	all := []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))}
	for _, below := range []string{"member", "member/snap", "member/wal"} {
		all = append(all, filepath.Join(dir, below))
	}
	for _, d := range all {
		f, err := os.Open(d)
		if err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("sync directory %s: %w", d, err)
		}
	}
	return nil
}

func config(dir string) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = memberName
	cfg.Dir = dir
	cfg.InitialCluster = cfg.InitialClusterFromName(memberName)
	cfg.ListenPeerUrls, cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil, nil
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{"stderr"}
	cfg.EnableGRPCGateway = false
	cfg.SnapshotCatchUpEntries = raftEntries
	cfg.WatchProgressNotifyInterval = progressInterval
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, history.String()
	return cfg
}

// Dial connects to the member in memory.
func (m *Member) Dial(ctx context.Context) (net.Conn, error) { return m.listener.DialContext(ctx) }

// Wait blocks until ctx is done or the member fails.
func (m *Member) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-m.etcd.Err():
		return fmt.Errorf("etcd stopped: %w", err)
	}
}

// Close stops the member. Clients should be closed first.
func (m *Member) Close() error {
	m.server.Stop()
	err := <-m.served
	m.etcd.Close()
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}
