package bed

import "path/filepath"

// aggregationFlags let the API server hand requests on to others that serve a part of its
// API, and let those know that a request comes from it. Services have no addresses of their
// own on the control plane's side, so it asks their endpoints.
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
