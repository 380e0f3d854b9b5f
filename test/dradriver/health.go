package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// WatchHealthStatus sends the health of all devices at intervals. It leaves out devices without a
// file, so that their last health expires.
func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	if d.health == 0 {
		return kubeletplugin.ErrHealthNotSupported
	}
	tick := time.NewTicker(d.health / 10)
	defer tick.Stop()
	for {
		report, err := d.readHealth()
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

// readHealth reads the health files.
func (d *driver) readHealth() (kubeletplugin.DeviceHealthReport, error) {
	var report kubeletplugin.DeviceHealthReport
	files, err := filepath.Glob(filepath.Join(d.state, "health", "*"))
	if err != nil {
		return report, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) { // just removed
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
