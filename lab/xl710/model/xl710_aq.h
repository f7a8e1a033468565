/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: admin commands, and where things are in their parameters and
 * buffers
 *
 * From i40e_adminq_cmd.h of the Linux driver; each group of offsets is named
 * after a structure there. Offsets are in bytes, all fields are little endian.
 */
#ifndef XL710_AQ_H
#define XL710_AQ_H

/* enum i40e_admin_queue_opc */
enum {
    AQ_GET_VERSION                      = 0x0001,
    AQ_DRIVER_VERSION                   = 0x0002,
    AQ_QUEUE_SHUTDOWN                   = 0x0003,
    AQ_SET_PF_CONTEXT                   = 0x0004,
    AQ_REQUEST_RESOURCE                 = 0x0008,
    AQ_RELEASE_RESOURCE                 = 0x0009,
    AQ_LIST_FUNC_CAPABILITIES           = 0x000a,
    AQ_LIST_DEV_CAPABILITIES            = 0x000b,
    AQ_MAC_ADDRESS_READ                 = 0x0107,
    AQ_MAC_ADDRESS_WRITE                = 0x0108,
    AQ_CLEAR_PXE_MODE                   = 0x0110,
    AQ_GET_SWITCH_CONFIG                = 0x0200,
    AQ_SET_PORT_PARAMETERS              = 0x0203,
    AQ_GET_SWITCH_RESOURCE_ALLOC        = 0x0204,
    AQ_SET_SWITCH_CONFIG                = 0x0205,
    AQ_RX_CTL_REG_READ                  = 0x0206,
    AQ_RX_CTL_REG_WRITE                 = 0x0207,
    AQ_ADD_VSI                          = 0x0210,
    AQ_UPDATE_VSI_PARAMETERS            = 0x0211,
    AQ_GET_VSI_PARAMETERS               = 0x0212,
    AQ_ADD_VEB                          = 0x0230,
    AQ_GET_VEB_PARAMETERS               = 0x0232,
    AQ_DELETE_ELEMENT                   = 0x0243,
    AQ_ADD_MACVLAN                      = 0x0250,
    AQ_REMOVE_MACVLAN                   = 0x0251,
    AQ_SET_VSI_PROMISCUOUS_MODES        = 0x0254,
    AQ_ADD_CONTROL_PACKET_FILTER        = 0x025a,
    AQ_REMOVE_CONTROL_PACKET_FILTER     = 0x025b,
    AQ_DCB_IGNORE_PFC                   = 0x0301,
    AQ_DCB_UPDATED                      = 0x0302,
    AQ_SET_DCB_PARAMETERS               = 0x0303,
    AQ_CONFIGURE_VSI_BW_LIMIT           = 0x0400,
    AQ_CONFIGURE_VSI_TC_BW              = 0x0407,
    AQ_QUERY_VSI_BW_CONFIG              = 0x0408,
    AQ_QUERY_VSI_ETS_SLA_CONFIG         = 0x040a,
    AQ_ENABLE_SWITCHING_COMP_ETS        = 0x0413,
    AQ_MODIFY_SWITCHING_COMP_ETS        = 0x0414,
    AQ_DISABLE_SWITCHING_COMP_ETS       = 0x0415,
    AQ_CONFIGURE_SWITCHING_COMP_BW      = 0x0417,
    AQ_QUERY_SWITCHING_COMP_ETS         = 0x0418,
    AQ_QUERY_PORT_ETS_CONFIG            = 0x0419,
    AQ_QUERY_SWITCHING_COMP_BW          = 0x041a,
    AQ_SUSPEND_PORT_TX                  = 0x041b,
    AQ_RESUME_PORT_TX                   = 0x041c,
    AQ_GET_PHY_ABILITIES                = 0x0600,
    AQ_SET_PHY_CONFIG                   = 0x0601,
    AQ_SET_MAC_CONFIG                   = 0x0603,
    AQ_SET_LINK_RESTART_AN              = 0x0605,
    AQ_GET_LINK_STATUS                  = 0x0607,   /* and the event */
    AQ_SET_PHY_INT_MASK                 = 0x0613,
    AQ_SET_LB_MODES                     = 0x0618,
    AQ_SET_PHY_DEBUG                    = 0x0622,
    AQ_GET_PHY_REGISTER                 = 0x0629,
    AQ_NVM_READ                         = 0x0701,
    AQ_NVM_ERASE                        = 0x0702,
    AQ_NVM_UPDATE                       = 0x0703,
    AQ_LLDP_GET_MIB                     = 0x0a00,
    AQ_LLDP_UPDATE_MIB                  = 0x0a01,
    AQ_LLDP_STOP                        = 0x0a05,
    AQ_LLDP_START                       = 0x0a06,
    AQ_GET_CEE_DCB_CFG                  = 0x0a07,
    AQ_LLDP_SET_LOCAL_MIB               = 0x0a08,
    AQ_LLDP_STOP_START_SPEC_AGENT       = 0x0a09,
    AQ_ADD_UDP_TUNNEL                   = 0x0b00,
    AQ_DEL_UDP_TUNNEL                   = 0x0b01,
    AQ_SET_RSS_KEY                      = 0x0b02,
    AQ_SET_RSS_LUT                      = 0x0b03,
    AQ_GET_RSS_KEY                      = 0x0b04,
    AQ_GET_RSS_LUT                      = 0x0b05,
    AQ_DEBUG_READ_REG                   = 0xff03,
    AQ_DEBUG_WRITE_REG                  = 0xff04,
};

/* Any indirect command */
#define AQP_ADDR_HIGH           8
#define AQP_ADDR_LOW            12

/* i40e_aqc_get_version */
#define VERSION_ROM             0
#define VERSION_FW_BUILD        4
#define VERSION_FW_MAJOR        8
#define VERSION_FW_MINOR        10
#define VERSION_API_MAJOR       12
#define VERSION_API_MINOR       14

/* i40e_aqc_request_resource */
#define RESOURCE_ID             0
#define RESOURCE_ACCESS         2
#define RESOURCE_TIMEOUT        4

/* i40e_aqc_list_capabilites, i40e_aqc_list_capabilities_element_resp */
#define CAPS_COUNT              4
#define CAP_ID                  0
#define CAP_MAJOR               2
#define CAP_NUMBER              4
#define CAP_LOGICAL_ID          8
#define CAP_PHYS_ID             12
#define CAP_SIZE                32

/* i40e_aqc_mac_address_read, i40e_aqc_mac_address_read_data */
#define MAC_READ_FLAGS          0
#define MAC_READ_LAN            0
#define MAC_READ_PORT           12
#define MAC_READ_SIZE           24

/* i40e_aqc_rx_ctl_reg_read_write */
#define REG_ADDRESS             4
#define REG_VALUE               12
/* i40e_aqc_debug_reg_read_write has 64 bits */
#define REG_VALUE_HIGH          8

/* i40e_aq_get_phy_abilities_resp; the first three in i40e_aq_set_phy_config */
#define PHY_TYPES               0
#define PHY_SPEED               4
#define PHY_ABILITIES           5
#define PHY_MODULE_TYPE         20
#define PHY_RESP_SIZE           0x218
/* i40e_aq_set_phy_config */
#define PHY_TYPES_EXT           13
/* the request of the former */
#define PHY_GET_FLAGS           0

/* i40e_aq_set_mac_config */
#define MAC_CONFIG_MAX_FRAME    0

/* i40e_aqc_set_link_restart_an */
#define RESTART_AN_COMMAND      0

/* i40e_aqc_get_link_status */
#define LINK_FLAGS              0
#define LINK_PHY_TYPE           2
#define LINK_SPEED              3
#define LINK_INFO               4
#define LINK_AN_INFO            5
#define LINK_LOOPBACK           7
#define LINK_MAX_FRAME          8
#define LINK_CONFIG             10
#define LINK_TYPES              11
#define LINK_SIZE               16

/* i40e_aqc_set_phy_int_mask, i40e_aqc_set_lb_mode */
#define PHY_INT_MASK            8
#define LB_MODE                 0

/* i40e_aqc_phy_register_access */
#define PHY_REG_INTERFACE       0
#define PHY_REG_DEV             1
#define PHY_REG_ADDRESS         4
#define PHY_REG_VALUE           8

/* i40e_aqc_nvm_update */
#define NVM_MODULE              1
#define NVM_LENGTH              2
#define NVM_OFFSET              4

/* i40e_aqc_configure_vsi_bw_limit */
#define BW_LIMIT_CREDIT         4

/* i40e_aqc_configure_vsi_tc_bw_data; the VSI's SEID is in the parameters */
#define TC_BW_SEID              0
#define TC_BW_VALID             0
#define TC_BW_QS_HANDLE         16

/* i40e_aqc_query_vsi_bw_config_resp, i40e_aqc_query_vsi_ets_sla_config_resp */
#define VSI_BW_TC_VALID         0
#define VSI_BW_LIMIT            36
#define VSI_BW_SIZE             0x40
#define VSI_ETS_TC_VALID        0
#define VSI_ETS_CREDITS         4
#define VSI_ETS_SIZE            0x20

/* i40e_aqc_query_port_ets_config_resp */
#define PORT_ETS_TC_VALID       4
#define PORT_ETS_CREDITS        8
#define PORT_ETS_SIZE           0x44

/* i40e_aqc_query_switching_comp_{ets,bw}_config_resp */
#define COMP_ETS_TC_VALID       0
#define COMP_ETS_SIZE           0x40
#define COMP_BW_TC_VALID        0
#define COMP_BW_CREDITS         4
#define COMP_BW_SIZE            0x20

/* i40e_aqc_add_udp_tunnel, i40e_aqc_remove_udp_tunnel */
#define UDP_TUNNEL_PORT         0
#define UDP_TUNNEL_INDEX        2

/* i40e_aqc_get_set_rss_key, i40e_aqc_get_set_rss_lut */
#define RSS_VSI                 0
#define RSS_FLAGS               2

/* i40e_aqc_get_switch_config, i40e_aqc_switch_config_element_resp */
#define SWITCH_SEID             0
#define SWITCH_HEAD_SIZE        16
#define SWITCH_HEAD_COUNT       0
#define SWITCH_HEAD_TOTAL       2
#define ELEMENT_TYPE            0
#define ELEMENT_REVISION        1
#define ELEMENT_SEID            2
#define ELEMENT_UPLINK          4
#define ELEMENT_DOWNLINK        6
#define ELEMENT_CONNECTION      11
#define ELEMENT_INFO            14
#define ELEMENT_SIZE            16

/* i40e_aqc_switch_resource_alloc_element_resp; the count is a parameter */
#define ALLOC_COUNT             0
#define ALLOC_TYPE              0
#define ALLOC_GUARANTEED        2
#define ALLOC_TOTAL             4
#define ALLOC_USED              6
#define ALLOC_FREE              8
#define ALLOC_SIZE              16

/* i40e_aqc_set_switch_config */
#define SET_SWITCH_MODE         10

/* i40e_aqc_add_get_update_vsi, and its completion */
#define VSI_UPLINK              0
#define VSI_FLAGS               6
#define VSI_SEID                0
#define VSI_NUMBER              2
#define VSI_USED                4
#define VSI_FREE                6
#define VSI_INFO_SIZE           128

/* i40e_aqc_vsi_properties_data */
#define INFO_SECTIONS           0
#define INFO_VLAN_FLAGS         12
#define INFO_MAP_FLAGS          28
#define INFO_QUEUE_MAP          30
#define INFO_TC_MAP             62
#define INFO_QS_HANDLE          96
#define INFO_STAT_IDX           112

/* i40e_aqc_add_veb, and its completion */
#define VEB_UPLINK              0
#define VEB_DOWNLINK            2
#define VEB_SWITCH_SEID         6
#define VEB_SEID                8
#define VEB_STAT_IDX            10
#define VEB_USED                12
#define VEB_FREE                14
/* i40e_aqc_get_veb_parameters_completion */
#define VEB_GET_SEID            0
#define VEB_GET_SWITCH_ID       2
#define VEB_GET_FLAGS           4
#define VEB_GET_STAT_IDX        6
#define VEB_GET_USED            8
#define VEB_GET_FREE            10

/* i40e_aqc_macvlan, and its completion */
#define MACVLAN_COUNT           0
#define MACVLAN_SEID            2
#define MACVLAN_PERFECT_USED    0
#define MACVLAN_PERFECT_FREE    2
#define MACVLAN_UNICAST_FREE    4
#define MACVLAN_MULTICAST_FREE  6
/* i40e_aqc_{add,remove}_macvlan_element_data */
#define MACVLAN_MAC             0
#define MACVLAN_VLAN            6
#define MACVLAN_FLAGS           8
#define MACVLAN_RESULT          12
#define MACVLAN_SIZE            16

/* i40e_aqc_set_vsi_promiscuous_modes */
#define PROMISC_FLAGS           0
#define PROMISC_VALID           2
#define PROMISC_SEID            4
#define PROMISC_VLAN_TAG        6

/* i40e_aqc_add_remove_control_packet_filter, and its completion */
#define ETYPE_ETYPE             6
#define ETYPE_FLAGS             8
#define ETYPE_SEID              10
#define ETYPE_USED              2
#define ETYPE_FREE              6

#endif
