package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	storage "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	workers = 4
	// callLimit bounds one call to the driver. It is the default of csi-attacher.
	callLimit = 15 * time.Second
)

// attacher reconciles the VolumeAttachments of one driver.
type attacher struct {
	client  kubernetes.Interface
	driver  csi.ControllerClient
	name    string
	attach  bool // the driver attaches volumes; otherwise they are marked as attached at once
	watches informers.SharedInformerFactory
	all     storagelisters.VolumeAttachmentLister
	queue   workqueue.TypedRateLimitingInterface[string]
}

// newAttacher waits for the driver and reads its name and capabilities.
func newAttacher(ctx context.Context, client kubernetes.Interface, conn *grpc.ClientConn) (*attacher, error) {
	info, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("get name of the driver: %w", err)
	}
	controller := csi.NewControllerClient(conn)
	capabilities, err := controller.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return nil, fmt.Errorf("get capabilities of the driver: %w", err)
	}
	watches := informers.NewSharedInformerFactory(client, 0)
	limits := workqueue.NewTypedItemExponentialFailureRateLimiter[string](500*time.Millisecond, 30*time.Second)
	return &attacher{
		client: client, driver: controller, name: info.GetName(), watches: watches,
		attach: slices.ContainsFunc(capabilities.GetCapabilities(), func(c *csi.ControllerServiceCapability) bool {
			return c.GetRpc().GetType() == csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME
		}),
		all:   watches.Storage().V1().VolumeAttachments().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(limits),
	}, nil
}

// run reconciles until ctx is done.
func (a *attacher) run(ctx context.Context) error {
	add := func(object any) {
		if v, ok := object.(*storage.VolumeAttachment); ok && v.Spec.Attacher == a.name {
			a.queue.Add(v.Name)
		}
	}
	watch := a.watches.Storage().V1().VolumeAttachments().Informer()
	if _, err := watch.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, now any) { add(now) },
	}); err != nil {
		return err
	}
	a.watches.Start(ctx.Done())
	defer a.watches.Shutdown()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	a.queue.ShutDown()
	group.Wait()
	return nil
}

// next reconciles one attachment. It returns false when the queue is shut down.
func (a *attacher) next(ctx context.Context) bool {
	name, ended := a.queue.Get()
	if ended {
		return false
	}
	defer a.queue.Done(name)
	v, err := a.all.Get(name)
	if err != nil {
		a.queue.Forget(name) // deleted
		return true
	}
	if err := a.sync(ctx, v); err != nil {
		fmt.Fprintf(os.Stderr, "attachment %s: %v\n", name, err)
		a.queue.AddRateLimited(name)
		return true
	}
	a.queue.Forget(name)
	return true
}
