// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

#include "zeek/plugin/Plugin.h"

#include "zeek/iosource/Component.h"

#include "Source.h"

namespace af_packet_v4 {

class Plugin : public zeek::plugin::Plugin {
public:
    zeek::plugin::Configuration Configure() override {
        // Of two packet sources with a prefix, Zeek takes that of the plugin that it has first: those
        // that are built into it, by name, then those that it loads. So "af_packet" is the source of
        // V3, unless this plugin is built in.
        AddComponent(new zeek::iosource::PktSrcComponent("AF_PacketV4Reader", "tpacket4:af_packet",
                                                         zeek::iosource::PktSrcComponent::LIVE, Source::Instantiate));

        zeek::plugin::Configuration config;
        config.name = "AF_Packet::V4";
        config.description = "Packets by AF_PACKET V4, without a copy";
        config.version.major = 1;
        config.version.minor = 0;
        config.version.patch = 0;
        return config;
    }
} plugin;

} // namespace af_packet_v4
