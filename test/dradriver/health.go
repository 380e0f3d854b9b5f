package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// WatchHealthStatus tells what the files say, again and again: devices that have no file are
// left out, so that what was said of them grows old.
func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	if d.health == 0 {
		return kubeletplugin.ErrHealthNotSupported
	}
	tick := time.NewTicker(d.health / 10)
	defer tick.Stop()
	for {
		report, err := d.look()
		if err != nil {
			return err
		}
		select {
		case reports <- report:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look reads the files.
func (d *driver) look() (kubeletplugin.DeviceHealthReport, error) {
	var report kubeletplugin.DeviceHealthReport
	files, err := filepath.Glob(filepath.Join(d.state, "health", "*"))
	if err != nil {
		return report, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) { // removed just now
			continue
		}
		if err != nil {
			return report, err
		}
		health, message, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
			PoolName: d.node, DeviceName: filepath.Base(file), Health: kubeletplugin.HealthStatus(health), Message: message, HealthCheckTimeout: d.health,
		})
	}
	return report, nil
}
