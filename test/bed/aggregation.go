package bed

import "path/filepath"

// aggregationFlags configure the API server's aggregation layer and the client certificate by
// which extension API servers recognize it. Service addresses are not routed on the host, so the
// API server connects to endpoints.
func (c *ControlPlane) aggregationFlags() ([]string, error) {
	const name = "front-proxy-client"
	front, err := newAuthority(filepath.Join(c.ca.dir, "front-proxy"))
	if err != nil {
		return nil, err
	}
	client, err := front.client(name, name)
	if err != nil {
		return nil, err
	}
	return []string{
		"--enable-aggregator-routing=true",
		"--requestheader-client-ca-file=" + front.caFile(),
		"--requestheader-allowed-names=" + name,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + client.cert,
		"--proxy-client-key-file=" + client.key,
	}, nil
}
