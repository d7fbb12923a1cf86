"""Regions that are said after a place to tell which one it is: `Portland, Maine`."""

_STATES = """
alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii
idaho illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan
minnesota mississippi missouri montana nebraska nevada new_hampshire new_jersey new_mexico
new_york north_carolina north_dakota ohio oklahoma oregon pennsylvania rhode_island
south_carolina south_dakota tennessee texas utah vermont virginia washington west_virginia
wisconsin wyoming puerto_rico alberta british_columbia manitoba new_brunswick newfoundland
nova_scotia ontario quebec saskatchewan new_south_wales queensland tasmania
"""

_COUNTRIES = """
england scotland wales northern_ireland united_kingdom united_states ireland france germany
spain portugal italy switzerland austria belgium netherlands luxembourg denmark norway sweden
finland iceland poland hungary romania bulgaria greece turkey cyprus malta albania serbia
croatia slovenia slovakia montenegro ukraine belarus russia estonia latvia lithuania moldova
armenia azerbaijan kazakhstan uzbekistan canada mexico guatemala honduras nicaragua costa_rica
panama cuba jamaica haiti colombia venezuela ecuador peru bolivia brazil paraguay uruguay
argentina chile morocco algeria tunisia libya egypt sudan ethiopia kenya uganda tanzania rwanda
zambia zimbabwe mozambique angola namibia botswana south_africa nigeria ghana senegal mali
cameroon israel jordan lebanon syria iraq iran saudi_arabia yemen oman kuwait qatar afghanistan
pakistan india nepal bangladesh sri_lanka china taiwan mongolia japan south_korea north_korea
vietnam laos cambodia thailand malaysia singapore indonesia philippines australia new_zealand
"""

REGIONS = frozenset(tuple(name.split("_")) for name in (_STATES + _COUNTRIES).split())
"""States, provinces and countries, as the words of their names."""
